"""What a simulation is given: step law, memory, sessions, tier and start."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from ..errors import SpecError
from ..service.step_law import StepLaw
from ..spec.distributions import LognormalMixture

Start = Literal["warm", "cold", "fresh"]
Resume = Literal["block", "interval", "turn_end"]
Policy = Literal["first_come", "longest_prefix"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionLaws:
    """What the sessions of one class ask for, each quantity drawn on its own.

    Parameters
    ----------
    first_tokens : LognormalMixture
        Private prompt of the first turn, without the shared prefix [tokens].
    new_tokens, output_tokens : LognormalMixture
        New input of a later turn and output of every turn; rounded to at least 1 [tokens].
    turns : LognormalMixture
        Turns of a session, rounded to at least 1 [1].
    think_time : LognormalMixture
        From a response's end to the next request, and before a new session starts [s].
    reset_probability : float
        Chance that a later turn drops its context and starts over within the session [1].
    reset_kept_tokens : int
        Private tokens that survive such a reset [tokens].
    reset_tokens : LognormalMixture, optional
        New input of a turn that resets; `first_tokens` when absent [tokens].
    agents : SubAgents, optional
        Work handed to sub-agents.
    """

    first_tokens: LognormalMixture
    new_tokens: LognormalMixture
    output_tokens: LognormalMixture
    turns: LognormalMixture
    think_time: LognormalMixture
    reset_probability: float = 0.0
    reset_kept_tokens: int = 0
    reset_tokens: LognormalMixture | None = None
    agents: SubAgents | None = None

    def __post_init__(self) -> None:
        if not 0.0 <= self.reset_probability <= 1.0:
            raise SpecError("reset_probability is a share in [0, 1].", field="reset_probability")
        if self.agents is not None and self.agents.laws.agents is not None:
            raise SpecError("sub-agents have no sub-agents of their own.", field="agents")


@dataclass(frozen=True, slots=True, kw_only=True)
class SubAgents:
    """Work that a session hands to sessions of its own, and waits for.

    Parameters
    ----------
    probability : float
        Chance that a turn ends in a hand-over instead of a think time [1].
    count : LognormalMixture
        Sub-agents started at once, rounded to at least 1, at most `most` [1].
    laws : SessionLaws
        What each of them does; its context dies with it.
    most : int
        Largest number at once [1].
    """

    probability: float
    count: LognormalMixture
    laws: SessionLaws
    most: int = 8

    def __post_init__(self) -> None:
        if not 0.0 <= self.probability <= 1.0 or self.most < 1:
            raise SpecError("a hand-over needs a share in [0, 1] and most >= 1.", field="agents")


@dataclass(frozen=True, slots=True, kw_only=True)
class Tier:
    """An inclusive write-through second tier behind one link.

    Parameters
    ----------
    tokens : float
        Capacity [tokens].
    bytes_per_token : float
        Bytes that a token moves over the link [bytes/token].
    bytes_per_s : float
        Rate of the link; loads queue first-come [bytes/s].
    """

    tokens: float
    bytes_per_token: float
    bytes_per_s: float

    def __post_init__(self) -> None:
        if not (self.tokens >= 0 and self.bytes_per_token > 0 and self.bytes_per_s > 0):
            raise SpecError("a tier needs tokens >= 0 and positive bytes and rate.", field="tier")


@dataclass(frozen=True, slots=True, kw_only=True)
class StateRule:
    """Recurrent state of a hybrid model: what it costs, and where a hit may resume.

    Parameters
    ----------
    resume : {"block", "interval", "turn_end"}
        Any block (attention only); multiples of `interval_tokens`; or the end of the session's
        last turn alone, so that a prefix with a single lost block is lost as a whole.
    interval_tokens : int
        Distance of the checkpoints under ``"interval"`` [tokens].
    running_tokens, checkpoint_tokens : int
        Memory of a running request's state, and of one retained checkpoint [token equivalents].
    """

    resume: Resume = "block"
    interval_tokens: int = 0
    running_tokens: int = 0
    checkpoint_tokens: int = 0

    def __post_init__(self) -> None:
        if self.resume not in ("block", "interval", "turn_end"):
            raise SpecError("resume is block, interval or turn_end.", field="resume")
        if (self.resume == "interval") != (self.interval_tokens > 0):
            raise SpecError(
                "interval_tokens belongs to resume='interval' and is positive there.",
                field="interval_tokens",
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulationCase:
    """One engine replica and the live sessions on it.

    Parameters
    ----------
    name : str
        Label of the case.
    step_law : StepLaw
        Seconds per step, token budget and running limit.
    kv_tokens : float
        KV budget, shared prefix included [tokens].
    sessions : SessionLaws or tuple of (float, SessionLaws)
        Laws of the sessions; a tuple gives classes with their shares of the slots.
    concurrency : int
        Live sessions [1].
    shared_prefix_tokens : int
        Prefix that all prompts begin with; resident from the start [tokens].
    max_context_tokens : float
        Longest prompt plus output; a turn that would pass it is shortened, and the session ends
        with it [tokens].
    block_tokens : int
        Tokens of a cache block [tokens].
    tier : Tier, optional
        Second tier.
    state : StateRule
        Recurrent state of hybrid models.
    prefix_caching : bool
        False makes every prompt a miss, shared prefix included.
    frozen_context_tokens : tuple of float, optional
        Context of each session at the end of every turn, held for ever: a turn first drops as many
        tokens of its tail as it will add [tokens].
    branches : int
        Contexts of a session, such as those of its helpers; a turn goes on with any of them, and
        all of them end with it [1].
    session_arrivals_per_s : float
        Poisson rate of new sessions; `concurrency` is then the most that are let in, and a
        session that finds them all taken is turned away. 0 for a closed population [1/s].
    policy : {"first_come", "longest_prefix"}
        Who of the waiting starts next: the first, or the one with most tokens in cache.
    """

    name: str
    step_law: StepLaw
    kv_tokens: float
    sessions: SessionLaws | tuple[tuple[float, SessionLaws], ...]
    concurrency: int
    shared_prefix_tokens: int = 0
    max_context_tokens: float = math.inf
    block_tokens: int = 64
    tier: Tier | None = None
    state: StateRule = StateRule()
    prefix_caching: bool = True
    frozen_context_tokens: tuple[float, ...] | None = None
    branches: int = 1
    session_arrivals_per_s: float = 0.0
    policy: Policy = "first_come"

    def __post_init__(self) -> None:
        if self.concurrency < 1 or self.block_tokens < 1 or self.shared_prefix_tokens < 0:
            raise SpecError(
                "a simulation needs concurrency >= 1, block_tokens >= 1 and a prefix >= 0.",
                field="concurrency",
            )
        room = self.kv_tokens - self.shared_prefix_tokens - self.state.running_tokens
        if not room >= 4 * self.block_tokens:
            raise SpecError(
                f"kv_tokens {self.kv_tokens:.0f} leaves no room for a request beside the shared "
                "prefix and a request's state.",
                field="kv_tokens",
            )
        frozen = self.frozen_context_tokens
        if frozen is not None and len(frozen) != self.concurrency:
            raise SpecError(
                "frozen_context_tokens needs one context per session.",
                field="frozen_context_tokens",
            )
        if self.policy not in ("first_come", "longest_prefix"):
            raise SpecError("policy is first_come or longest_prefix.", field="policy")
        if not 0.0 <= self.session_arrivals_per_s < math.inf:
            raise SpecError("session_arrivals_per_s is finite and >= 0.", field="policy")
        if self.branches < 1 or (frozen is not None and self.branches > 1):
            raise SpecError("branches is at least 1, and 1 for frozen contexts.", field="branches")
        if frozen is not None and self.session_arrivals_per_s > 0:
            raise SpecError(
                "frozen contexts need a closed population.", field="frozen_context_tokens"
            )
        if frozen is not None and self.state.resume == "turn_end":
            raise SpecError("frozen contexts need block or interval hits.", field="state")

    def classes(self) -> tuple[tuple[float, SessionLaws], ...]:
        """Return the session classes with their shares of the slots."""
        if isinstance(self.sessions, SessionLaws):
            return ((1.0, self.sessions),)
        return self.sessions
