"""The service set: step times against public fixed-length benchmarks, with every miss named."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from statistics import median
from typing import Any

from ..catalog import model
from ..spec.attention import (
    CompressedAttention,
    GroupedQueryAttention,
    LatentAttention,
)
from ..spec.model import MixtureOfExperts
from .service_cases import ServiceCase, cases, law_of, prediction
from .service_fit import constants_without_source

MISS_RATIO = 1.4
PREFILL_BOUND_SHARE = 0.4
QUANTITIES = ("tpot_s", "output_tokens_per_s", "ttft_s")


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """One predicted quantity of one case.

    Parameters
    ----------
    case : ServiceCase
        The measured point.
    quantity : str
        ``"tpot_s"``, ``"output_tokens_per_s"`` or ``"ttft_s"``.
    measured, predicted : float
        In the quantity's unit.
    regime : str
        ``"prefill-bound"``, ``"memory-bound"`` or ``"saturated"``.
    """

    case: ServiceCase
    quantity: str
    measured: float
    predicted: float
    regime: str

    @property
    def log_ratio(self) -> float:
        """Logarithm of predicted over measured [1]."""
        return math.log(self.predicted / self.measured)

    @property
    def slowness(self) -> float:
        """Logarithm of predicted over measured time, whichever way the quantity counts [1]."""
        return -self.log_ratio if self.quantity == "output_tokens_per_s" else self.log_ratio

    @property
    def pair(self) -> tuple[str, str]:
        """Accelerator and engine."""
        assert self.case.deployment is not None
        return self.case.accelerator, self.case.deployment.engine

    @property
    def build(self) -> tuple[str, ...]:
        """Source, engine version and model: what one team measured on one day."""
        assert self.case.deployment is not None
        version = self.case.deployment.engine_version
        return (*self.pair, self.case.collection, version, self.case.model)


def family(name: str) -> str:
    """Kind of architecture of a catalog model, by what its step time is made of."""
    groups = model(name).layers
    mixers = [group.mixer for group in groups if group.mixer is not None]
    routed = any(isinstance(group.feed_forward, MixtureOfExperts) for group in groups)
    if any(isinstance(mixer, CompressedAttention) for mixer in mixers):
        return "compressed MoE"
    latent = [mixer for mixer in mixers if isinstance(mixer, LatentAttention)]
    if any(mixer.indexer for mixer in latent):
        return "sparse latent MoE"
    hybrid = any(not isinstance(m, LatentAttention | GroupedQueryAttention) for m in mixers)
    kind = "hybrid" if hybrid else "latent" if latent else "grouped-query"
    return f"{kind} {'MoE' if routed else 'dense'}"


def scores(*, without_source: bool = False) -> list[Score]:
    """Return every scored quantity of every usable case, uncalibrated.

    Parameters
    ----------
    without_source : bool
        Whether the engine constants are those fitted without the case's own source.
    """
    found = []
    for case in cases():
        if case.unusable:
            continue
        constants = constants_without_source(case) if without_source else None
        point = prediction(case, law_of(case, constants))
        waits = case.concurrency > 1.05 * point.running * _ranks(case)
        regime = (
            "saturated"
            if waits
            else "prefill-bound"
            if point.prefill_share > PREFILL_BOUND_SHARE
            else "memory-bound"
        )
        values = {
            "tpot_s": point.tpot_s,
            "output_tokens_per_s": point.output_tokens_per_s,
            "ttft_s": point.ttft_s,
        }
        if case.output_tokens <= 1 and case.total_tokens_per_s:
            values = {"output_tokens_per_s": point.output_tokens_per_s * case.input_tokens}
        for quantity, predicted in values.items():
            measured = _measured(case, quantity)
            if measured:
                found.append(
                    Score(
                        case=case,
                        quantity=quantity,
                        measured=measured,
                        predicted=predicted,
                        regime=regime,
                    )
                )
    return found


def _ranks(case: ServiceCase) -> int:
    assert case.deployment is not None
    return max(1, case.node[0] * case.node[1] // case.deployment.gpus) * case.deployment.dp


def _measured(case: ServiceCase, quantity: str) -> float | None:
    if quantity == "output_tokens_per_s" and case.output_tokens <= 1:
        return case.total_tokens_per_s
    if quantity != "output_tokens_per_s" and case.requests is not None:
        # A finite burst: its latencies are those of the queue, only its makespan is a rate.
        return None
    value: float | None = getattr(case, quantity)
    return value


def summary(log_ratios: Iterable[float]) -> dict[str, float | int | None]:
    """Return count, median and 90th percentile of the absolute error, and bias, of log ratios."""
    logs = sorted(log_ratios)
    if not logs:
        return {"n": 0, "median_abs_pct_error": None, "p90_abs_pct_error": None, "bias": None}
    errors = sorted(abs(math.expm1(value)) for value in logs)
    return {
        "n": len(logs),
        "median_abs_pct_error": 100 * median(errors),
        "p90_abs_pct_error": 100 * errors[min(len(errors) - 1, math.ceil(0.9 * len(errors)) - 1)],
        "bias": math.expm1(median(logs)),
    }


def one_parameter(found: list[Score]) -> list[tuple[Score, float]]:
    """Return (score, log ratio) after one time factor per accelerator-engine pair.

    Notes
    -----
    The factor is the median over the pair's other sources; a pair with one source has none and is
    left out.
    """
    return _held_out(found, lambda s: s.pair, lambda s: s.case.collection)


def within_build(found: list[Score]) -> list[tuple[Score, float]]:
    """Return (score, log ratio) after one time factor per build, from its other load points."""
    return _held_out(found, lambda s: s.build, lambda s: s.case.id)


def _held_out(found: list[Score], group: Any, unit: Any) -> list[tuple[Score, float]]:
    groups: dict[Any, list[Score]] = defaultdict(list)
    for score in found:
        if score.quantity != "ttft_s":
            groups[group(score)].append(score)
    fitted = []
    for members in groups.values():
        for score in members:
            others = [other.slowness for other in members if unit(other) != unit(score)]
            if others:
                fitted.append((score, score.slowness - median(others)))
    return fitted


def identical_spread(found: list[Score]) -> list[dict[str, Any]]:
    """Return configurations measured more than once, and the ratio of their extremes [1]."""
    groups: dict[tuple[object, ...], list[Score]] = defaultdict(list)
    for score in found:
        if score.quantity != "ttft_s":
            groups[(*score.case.configuration, score.quantity)].append(score)
    rows = []
    for members in groups.values():
        values = [member.measured for member in members]
        if len(values) > 1:
            rows.append(
                {
                    "ids": [member.case.id for member in members],
                    "model": members[0].case.model,
                    "accelerator": members[0].case.accelerator,
                    "quantity": members[0].quantity,
                    "ratio": max(values) / min(values),
                }
            )
    return sorted(rows, key=lambda row: -float(row["ratio"]))


def run() -> dict[str, Any]:
    """Return the error tables of the service set, its misses and its unusable rows."""
    found = scores()
    timed = [score for score in found if score.quantity != "ttft_s"]
    unseen = scores(without_source=True)
    spread = identical_spread(found)
    return {
        "name": "service",
        **summary(score.log_ratio for score in timed),
        "quantities": {
            quantity: summary(s.log_ratio for s in found if s.quantity == quantity)
            for quantity in QUANTITIES
        },
        "leave_one_source_out": {
            quantity: summary(s.log_ratio for s in unseen if s.quantity == quantity)
            for quantity in QUANTITIES
        },
        "one_parameter_leave_one_source_out": _paired(one_parameter(found)),
        "within_build_leave_one_point_out": _paired(within_build(found)),
        "groups": _groups(found),
        "identical_configurations": {
            "n": len(spread),
            "median_ratio": median(row["ratio"] for row in spread) if spread else None,
            "rows": spread,
        },
        "misses": _misses(timed, spread),
        "unusable": [
            {"id": case.id, "source": case.source, "reason": case.unusable}
            for case in cases()
            if case.unusable
        ],
    }


def _paired(fitted: list[tuple[Score, float]]) -> dict[str, Any]:
    """Errors after a factor, beside the uncalibrated errors of the same rows."""
    return {
        **summary(log for _, log in fitted),
        "same_rows_uncalibrated": summary(score.log_ratio for score, _ in fitted),
    }


def _groups(found: list[Score]) -> list[dict[str, Any]]:
    groups: dict[tuple[str, ...], list[Score]] = defaultdict(list)
    for score in found:
        accelerator, engine = score.pair
        groups[(accelerator, engine, family(score.case.model), score.regime)].append(score)
    rows = []
    for (accelerator, engine, kind, regime), members in sorted(groups.items()):
        row: dict[str, Any] = {
            "accelerator": accelerator, "engine": engine, "family": kind, "regime": regime,
        }  # fmt: skip
        for quantity in QUANTITIES:
            row[quantity] = summary(m.log_ratio for m in members if m.quantity == quantity)
        rows.append(row)
    return rows


def _misses(timed: list[Score], spread: list[dict[str, Any]]) -> list[dict[str, Any]]:
    moved = {name: row["ratio"] for row in reversed(spread) for name in row["ids"]}
    by_build: dict[tuple[str, ...], list[float]] = defaultdict(list)
    for score in timed:
        by_build[score.build].append(score.slowness)
    rows = []
    for score in timed:
        if abs(score.log_ratio) <= math.log(MISS_RATIO):
            continue
        build = median(by_build[score.build])
        if moved.get(score.case.id, 1.0) > MISS_RATIO:
            reason = f"the same configuration was measured {moved[score.case.id]:.1f}x apart"
        elif len(by_build[score.build]) > 2 and abs(build) > math.log(MISS_RATIO):
            reason = f"every point of this build is {math.exp(-build):.1f}x the predicted time"
        else:
            reason = f"single point, {score.regime}"
        rows.append(
            {
                "id": score.case.id,
                "source": score.case.source,
                "model": score.case.model,
                "accelerator": score.case.accelerator,
                "engine": " ".join(score.pair[1:]),
                "quantity": score.quantity,
                "measured": score.measured,
                "predicted": score.predicted,
                "reason": reason,
            }
        )
    return rows
