"""Memory: does it fit, and how many KV tokens are left? Call it, or look into its modules."""

from ..callable_package import answer_calls

answer_calls(__name__, "capmodel.pipeline", "memory")
