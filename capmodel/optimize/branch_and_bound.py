"""Search over concurrency x DRAM x configurations by intervals, until nothing better can be left.

A box is a range of sessions and of DRAM sizes in one configuration. Its best possible value comes
from the lossless rate over its sessions and the price of its least DRAM. The most DRAM that is
still worth its price, at the fewest sessions, decides whether any of it can keep the rules.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from ..errors import InfeasibleError, SpecError
from .configuration import Configuration
from .evaluation import Evaluated, Evaluator, Rules
from .evidence import Evidence, lower_bound, point_value
from .objective import Objective
from .splitting import middle_of, sides_of_peak

# A search stops here and says what gap is left.
MAX_EVALUATIONS = 1200


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """The best point of a search.

    Parameters
    ----------
    configuration : int
        Index of its configuration.
    evaluated : Evaluated
        The solved point.
    value : float
        Its objective.
    """

    configuration: int
    evaluated: Evaluated
    value: float


@dataclass(kw_only=True)
class Search:
    """What a search looked at; filled while it runs.

    Parameters
    ----------
    evaluators : dict of int to Evaluator
        By configuration; refused ones are absent.
    evidence : list of Evidence
        Statements that cover the whole space.
    best : Found or None
        None where no point keeps the rules.
    open_bound : float
        Least bound of the boxes that a search which stopped short left open.
    """

    configurations: Sequence[Configuration]
    objective: Objective
    evaluators: dict[int, Evaluator] = field(default_factory=dict)
    evidence: list[Evidence] = field(default_factory=list)
    best: Found | None = None
    open_bound: float = math.inf

    @property
    def lower_bound(self) -> float:
        """What no point falls under: the best value, or less where the search stopped short."""
        best = math.inf if self.best is None else self.best.value
        return min(best, self.open_bound)

    @property
    def evaluated(self) -> int:
        """Points solved [1]."""
        return sum(len(evaluator.evaluated) for evaluator in self.evaluators.values())


@dataclass(order=True, slots=True)
class _Box:
    """Sessions `few` to `many` per rank, DRAM sizes `small` to `large` (indices), by `bound`."""

    bound: float
    number: int
    configuration: int = field(compare=False)
    few: int = field(compare=False)
    many: int = field(compare=False)
    small: int = field(compare=False)
    large: int = field(compare=False)


def search(
    configurations: Sequence[Configuration],
    objective: Objective,
    rules: Rules,
    level: str,
    *,
    evaluator: Callable[[Configuration, Rules, str], Evaluator] = Evaluator,
    beat: float = math.inf,
    first: bool = False,
) -> Search:
    """Return the best point over all configurations, with the evidence that none is better.

    Parameters
    ----------
    configurations : sequence of Configuration
        What may be chosen besides sessions and DRAM.
    objective : Objective
        What to minimise.
    rules : Rules
        What to keep.
    level : str
        Queue model.
    evaluator : callable
        Solves the points of a configuration.
    beat : float
        Look for values under this one only.
    first : bool
        Stop at the first point found.

    Notes
    -----
    Best first: the box with the least bound is opened next, so the search ends when that bound is
    no better than the best point found, and every box left is excluded by its own bound.
    """
    state = Search(configurations=configurations, objective=objective)
    return _Run(state, rules, level, evaluator, beat).finish(first)


class _Run:
    """One search: the heap of open boxes and what is already excluded."""

    def __init__(
        self,
        state: Search,
        rules: Rules,
        level: str,
        evaluator: Callable[[Configuration, Rules, str], Evaluator],
        beat: float,
    ):
        self.state = state
        self.beat = beat
        self.heap: list[_Box] = []
        self.opened = 0
        self.seen: set[tuple[int, int, int]] = set()
        # Per configuration: points (sessions, size index) that break a rule.
        self.excluded: dict[int, list[tuple[int, int]]] = {}
        # Per configuration: a concurrency and the least size index seen to keep the rules.
        self.least: dict[int, tuple[int, int]] = {}
        # Per configuration and DRAM size: rates of the allowed points by sessions per rank.
        self.rates: dict[int, dict[float, dict[int, float]]] = {}
        self.keeps_cache = rules.hit_share > 0
        for index, configuration in enumerate(state.configurations):
            try:
                made = evaluator(configuration, rules, level)
            except (InfeasibleError, SpecError) as error:
                state.evidence.append(
                    Evidence(kind="refused", configuration=index, broken=(str(error),))
                )
                continue
            state.evaluators[index] = made
            self.excluded[index] = []
            self.rates[index] = {}
            self._start(index, made)

    def finish(self, first: bool) -> Search:
        """Open boxes until the best one left is no better than the best point."""
        while self.heap and not (first and self.state.best is not None):
            box = heapq.heappop(self.heap)
            if box.bound >= self._target():
                self._too_dear(box, box.small)
                continue
            self._open(box)
            if self.state.evaluated > MAX_EVALUATIONS:
                self._leave_open()
        return self.state

    def _leave_open(self) -> None:
        """Stop short: the bounds of the boxes left open bound what was not looked at."""
        for box in self.heap:
            self._too_dear(box, box.small)
        self.state.open_bound = min((box.bound for box in self.heap), default=math.inf)
        self.heap.clear()

    def _start(self, index: int, made: Evaluator) -> None:
        """Put the whole range on the heap, cut where an earlier search has solved points."""
        sizes = made.configuration.dram_sizes_bytes
        for point in list(made.evaluated.values()):
            sessions = point.concurrency // made.ranks
            if point.dram_bytes < sizes[0]:
                continue
            if point.broken:
                size = max(i for i, dram in enumerate(sizes) if dram <= point.dram_bytes)
                self.excluded[index].append((sessions, size))
                self._record(index, point, None)
            else:
                line = self.rates[index].setdefault(point.dram_bytes, {})
                line[sessions] = point.requests_per_s
        most = made.largest_concurrency // made.ranks
        cuts = sorted({s for line in self.rates[index].values() for s in line if s < most})
        for few, many in pairwise([0, *cuts, most]):
            self._push(index, few + 1, many, 0, len(sizes) - 1)

    def _target(self) -> float:
        return self.beat if self.state.best is None else self.state.best.value

    def _push(self, index: int, few: int, many: int, small: int, large: int) -> None:
        if few > many or small > large:
            return
        made = self.state.evaluators[index]
        rate = made.rate_bound(few * made.ranks, many * made.ranks)
        bound = self._bound(index, small, rate)
        self.opened += 1
        heapq.heappush(self.heap, _Box(bound, self.opened, index, few, many, small, large))

    def _bound(self, index: int, small: int, rate: float) -> float:
        made = self.state.evaluators[index]
        size = made.configuration.dram_sizes_bytes[small]
        return lower_bound(self.state.objective, made.configuration, size, rate)

    def _too_dear(self, box: _Box, small: int) -> None:
        """Record that the box is no better from size `small` on."""
        made = self.state.evaluators[box.configuration]
        rate = made.rate_bound(box.few * made.ranks, box.many * made.ranks)
        bound = self._bound(box.configuration, small, rate)
        self.state.evidence.append(
            Evidence(
                kind="rate",
                configuration=box.configuration,
                concurrency=box.few * made.ranks,
                up_to=box.many * made.ranks,
                dram_bytes=made.configuration.dram_sizes_bytes[small],
                requests_per_s=rate,
                value=bound if math.isfinite(bound) else None,
            )
        )

    def _affordable(self, box: _Box, small: int, rate: float) -> int:
        """Largest size index of the box whose price could still beat the best point."""
        low, high = small - 1, box.large
        while high > low:
            middle = (low + high + 1) // 2
            if self._bound(box.configuration, middle, rate) < self._target():
                low = middle
            else:
                high = middle - 1
        return low

    def _open(self, box: _Box) -> None:
        """Exclude the box by its least demanding point, or split it."""
        if box.few == 1 and box.many > 2:
            # One session tells nothing about many: split before solving.
            middle = middle_of(1, box.many)
            self._push(box.configuration, 1, middle, box.small, box.large)
            self._push(box.configuration, middle + 1, box.many, box.small, box.large)
            return
        index, made = box.configuration, self.state.evaluators[box.configuration]
        small = max(
            [box.small] + [i + 1 for c, i in self.excluded[index] if c <= box.few],
        )
        if small > box.large:
            return
        rate = made.rate_bound(box.few * made.ranks, box.many * made.ranks)
        large = self._affordable(box, small, rate)
        if large < box.large:
            self._too_dear(box, large + 1)
        if large < small or self._past_or_before_peak(box, small, large):
            return
        if self._solve(index, box.few, large).broken:
            return
        if box.few == box.many:
            self._settle(index, box.few, small, large)
            return
        middle = middle_of(box.few, box.many)
        for few, many in ((box.few, box.few), (box.few + 1, middle), (middle + 1, box.many)):
            self._push(index, few, many, small, large)

    def _past_or_before_peak(self, box: _Box, small: int, large: int) -> bool:
        """Exclude the box where it lies on the far side of a rate that falls away from the peak."""
        if not self.keeps_cache:
            return False
        index, made = box.configuration, self.state.evaluators[box.configuration]
        sizes = made.configuration.dram_sizes_bytes
        for size, line in self.rates[index].items():
            if size < sizes[large]:
                continue
            for witness, farther in sides_of_peak(line, box.few, box.many):
                bound = self._bound(index, small, line[witness])
                if bound >= self._target():
                    self.state.evidence.append(
                        Evidence(
                            kind="peak",
                            configuration=index,
                            concurrency=box.few * made.ranks,
                            up_to=box.many * made.ranks,
                            dram_bytes=sizes[small],
                            dram_up_to_bytes=size,
                            witness=witness * made.ranks,
                            farther=farther * made.ranks,
                            requests_per_s=line[witness],
                            value=bound if math.isfinite(bound) else None,
                        )
                    )
                    return True
        return False

    def _settle(self, index: int, sessions: int, small: int, large: int) -> None:
        """Settle one concurrency between two sizes, the upper one solved and allowed.

        The least size that keeps the rules is looked for where another concurrency had it, in
        proportion to the sessions, then upwards with growing strides; above it, by halves.
        """
        stride = 1
        trial = self._likely_broken(index, sessions, small, large)
        while small < large:
            top = self._solve(index, sessions, large)
            bound = self._bound(index, small, top.requests_per_s)
            if bound >= self._target():
                self._no_better(index, sessions, small, large, bound)
                return
            if self._solve(index, sessions, trial).broken:
                small, stride = trial + 1, 2 * stride
                trial = min(small + stride // 2 - 1, large - 1)
                continue
            self.least[index] = (sessions, trial)
            self._settle(index, sessions, small, trial)
            small = trial + 1
            trial = (small + large) // 2

    def _likely_broken(self, index: int, sessions: int, small: int, large: int) -> int:
        """Size to try first between two: just under the least one that is likely allowed."""
        middle = (small + large) // 2
        if index not in self.least:
            return middle
        others, size = self.least[index]
        guess = math.floor(size * sessions / others) - 1
        return guess if small <= guess < large else middle

    def _no_better(self, index: int, sessions: int, small: int, large: int, bound: float) -> None:
        made = self.state.evaluators[index]
        sizes = made.configuration.dram_sizes_bytes
        self.state.evidence.append(
            Evidence(
                kind="single",
                configuration=index,
                concurrency=sessions * made.ranks,
                up_to=sessions * made.ranks,
                dram_bytes=sizes[small],
                dram_up_to_bytes=sizes[large],
                requests_per_s=made.point(sessions * made.ranks, sizes[large]).requests_per_s,
                value=bound if math.isfinite(bound) else None,
            )
        )

    def _solve(self, index: int, sessions: int, size: int) -> Evaluated:
        """Solve a point, record it, and keep it if it is the best so far."""
        made = self.state.evaluators[index]
        dram = made.configuration.dram_sizes_bytes[size]
        point = made.point(sessions * made.ranks, dram)
        if (index, sessions, size) in self.seen:
            return point
        self.seen.add((index, sessions, size))
        value = None
        if point.broken:
            self.excluded[index].append((sessions, size))
        else:
            self.rates[index].setdefault(dram, {})[sessions] = point.requests_per_s
            value = point_value(self.state.objective, made.configuration, point)
            if value is not None and self._better(value, point):
                self.state.best = Found(configuration=index, evaluated=point, value=value)
        self._record(index, point, value)
        return point

    def _record(self, index: int, point: Evaluated, value: float | None) -> None:
        self.state.evidence.append(
            Evidence(
                kind="broken" if point.broken else "point",
                configuration=index,
                concurrency=point.concurrency,
                up_to=point.concurrency,
                dram_bytes=point.dram_bytes,
                dram_up_to_bytes=point.dram_bytes,
                requests_per_s=point.requests_per_s,
                value=value,
                broken=point.broken,
            )
        )

    def _better(self, value: float, point: Evaluated) -> bool:
        """Smaller value; between equals, less DRAM, then fewer sessions."""
        best = self.state.best
        if best is None:
            return value < self.beat
        if value < best.value:
            return True
        key = (best.evaluated.dram_bytes, best.evaluated.concurrency)
        return value == best.value and (point.dram_bytes, point.concurrency) < key
