"""Optimize: the cheapest plan within the SLOs, and why no other is cheaper."""

from ..callable_package import answer_calls

answer_calls(__name__, "capmodel.optimize.planner", "optimize")
