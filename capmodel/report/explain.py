"""The chain of numbers behind an answer: value, unit, formula, source and kind of each."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from ..pipeline import Run
from ..service.ledger import GROUPS
from ..units import GIB

BAR = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One number of the chain.

    Parameters
    ----------
    name, unit, formula, source, kind : str
        What it is, in which unit, from what, on whose word, and how it is known.
    value : float or int or str
        The number itself.
    """

    name: str
    value: float | int | str
    unit: str
    formula: str
    source: str
    kind: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StepBar:
    """One engine step as seconds by kernel class [s]."""

    title: str
    seconds: dict[str, float]
    bound: dict[str, str]

    @property
    def total_s(self) -> float:
        """Seconds of the step [s]."""
        return sum(self.seconds.values())

    def __str__(self) -> str:
        lines = [f"{self.title}: {self.total_s * 1e3:.2f} ms"]
        for name, seconds in sorted(self.seconds.items(), key=lambda item: -item[1]):
            share = seconds / self.total_s
            if share >= 0.005:
                mark = "#" * max(round(share * BAR), 1)
                lines.append(
                    f"  {name:<24} {seconds * 1e3:9.3f} ms  {share:5.1%}  {mark} {self.bound[name]}"
                )
        return "\n".join(lines)


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """The chain and the two step bars of one solved run."""

    steps: tuple[Step, ...]
    bars: tuple[StepBar, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON object of the contract."""
        return {
            "steps": [asdict(step) for step in self.steps],
            "step_time": [
                {"title": bar.title, "total_s": bar.total_s, "seconds": bar.seconds,
                 "bound": bar.bound}
                for bar in self.bars
            ],
        }  # fmt: skip

    def plot(self, ax: Any = None) -> Any:
        """Draw the two engine steps as stacked bars; return the matplotlib axes."""
        from .step_figure import step_figure

        return step_figure(self.bars, ax)

    def __str__(self) -> str:
        lines = []
        for step in self.steps:
            value = f"{step.value:,.6g}" if isinstance(step.value, int | float) else step.value
            lines.append(f"{step.name:<34} {value:>16} {step.unit:<14} {step.formula}")
            lines.append(f"{'':<34} {step.kind}: {step.source}")
        return "\n".join([*lines, "", *map(str, self.bars)])


def explain(run: Run) -> Explanation:
    """Return the chain of numbers behind a solved run."""
    return Explanation(
        steps=(*_memory(run), *_workload(run), *_network(run), *_cost(run)), bars=_bars(run)
    )


def _memory(run: Run) -> list[Step]:
    budget, part = run.budget, run.scenario.node.accelerator
    share = run.scenario.deployment.gpu_memory_utilization
    known = budget.evidence
    return [
        Step(
            name="HBM per GPU",
            value=part.hbm_bytes / GIB,
            unit="GiB",
            formula="as the driver reports it",
            source=part.provenance.get("hbm", "catalog"),
            kind="datasheet",
        ),
        Step(
            name="engine's share",
            value=share * part.hbm_bytes / GIB,
            unit="GiB",
            formula="gpu_memory_utilization x HBM",
            source="deployment",
            kind="given",
        ),
        Step(
            name="weights per GPU",
            value=budget.weights_bytes_per_gpu / GIB,
            unit="GiB",
            formula="sum over tensor classes, sharded and replicated parts",
            source=run.scenario.model.source or "configuration",
            kind=known,
        ),
        Step(
            name="other bytes per GPU",
            value=budget.overhead_bytes_per_gpu / GIB,
            unit="GiB",
            formula="activations + graphs + communication + context",
            source="catalog builds/overhead",
            kind="fitted",
        ),
        Step(
            name="KV pool per GPU",
            value=budget.available_kv_bytes_per_gpu / GIB,
            unit="GiB",
            formula="share - weights - other",
            source="memory stage",
            kind=known,
        ),
        Step(
            name="blocks",
            value=budget.kv_blocks,
            unit="blocks",
            formula=f"floor(pool / {budget.block_bytes:,.0f} B)",
            source="engine's page rule",
            kind="derived",
        ),
        Step(
            name="KV tokens as the engine logs them",
            value=budget.kv_tokens,
            unit="tokens",
            formula=f"blocks / {budget.blocks_per_request} x {budget.max_model_len:,}",
            source="engine's report rule",
            kind="derived",
        ),
        Step(
            name="KV tokens usable here",
            value=budget.usable_kv_tokens,
            unit="tokens",
            formula=f"less state blocks of {run.concurrency} live requests",
            source="memory stage",
            kind="derived",
        ),
    ]


def _workload(run: Run) -> list[Step]:
    load = run.scenario.workload
    rows = [
        ("prompt per request", load.request_tokens_mean, "tokens", "request_tokens"),
        ("live tokens per session tree", load.tree_tokens_mean, "tokens", "tree_tokens"),
        ("output per request", load.output_tokens_mean, "tokens", "output_tokens"),
        ("requests per session", load.turns_mean, "requests", "turns"),
        ("hits of an infinite cache", load.theoretical_hit_rate, "1", "theoretical_hit_rate"),
        ("gap, mean under its cap", load.think_time.mean(), "s", "think_time"),
    ]
    steps = []
    for name, value, unit, key in rows:
        source = load.provenance.get(key, f"workload {load.name}")
        kind, _, rest = source.partition(":")
        known = kind in ("measured", "derived", "assumed", "fitted", "given")
        steps.append(
            Step(
                name=name,
                value=value,
                unit=unit,
                formula="mean",
                source=rest.strip() if known else source,
                kind=kind if known else "given",
            )
        )
    return steps


def _network(run: Run) -> list[Step]:
    flow, weights = run.point.branch.flow, run.point.composition.weights
    rows = [
        ("wait for the prefill server", flow.wait_s, "W, closed queue of C sessions"),
        ("prefill", flow.prefill_s, "hit or miss, chunked, step law"),
        ("load from the tier", flow.load_s, "tokens loaded x link seconds"),
        ("decode", flow.decode_s, "output steps at the mixed pace"),
        ("cycle", flow.cycle_s, "think + wait + load + prefill + decode"),
    ]
    steps = [
        Step(
            name=name,
            value=float(weights @ values),
            unit="s",
            formula=f"{formula}, mean over compositions",
            source=f"network stage, level {run.level}",
            kind="derived",
        )
        for name, values, formula in rows
    ]
    state = run.point.headline
    steps += [
        Step(
            name="live tokens over HBM",
            value=run.point.overflow,
            unit="1",
            formula="P(Y > B) in the turn clock",
            source="composition",
            kind="derived",
        ),
        Step(
            name="hit rate",
            value=state.hit_rate,
            unit="1",
            formula="ceiling x (1 - E[missing])",
            source="order argument",
            kind="derived",
        ),
        Step(
            name="requests",
            value=run.requests_per_s,
            unit="1/s",
            formula="C / E[cycle]",
            source="Little's law",
            kind="derived",
        ),
        Step(
            name="output",
            value=run.output_tokens_per_s,
            unit="tokens/s",
            formula="requests x output",
            source="identity",
            kind="derived",
        ),
    ]
    return steps


def _cost(run: Run) -> list[Step]:
    cost = run.cost
    if cost.usd_per_hour is None or cost.usd_per_mtok_total is None:
        return []
    source = run.scenario.node.accelerator.provenance.get("prices_2026_07", cost.price_basis)
    return [
        Step(
            name="rent",
            value=cost.usd_per_hour,
            unit="USD/h",
            formula=f"{run.scenario.node.total_gpus} GPUs x {run.scenario.gpu_hour_usd} USD/h",
            source=f"{cost.price_basis}; {source}",
            kind="published" if cost.price_basis != "given" else "given",
        ),
        Step(
            name="cost per million tokens",
            value=cost.usd_per_mtok_total,
            unit="USD",
            formula="rent / (3600 x total tokens/s) x 1e6",
            source="cost stage",
            kind="derived",
        ),
    ]


def _bars(run: Run) -> tuple[StepBar, ...]:
    flow, weights = run.point.branch.flow, run.point.composition.weights
    load, law = run.scenario.workload, run.law
    batch = max(float(weights @ flow.decoding), 1.0)
    context = load.request_tokens_mean + 0.5 * load.output_tokens_mean
    chunk = law.max_batched_tokens - law.verify_tokens * batch
    start = max(load.request_tokens_mean - chunk, 0.0) / 2.0
    return (
        _bar(run, f"decode step, {batch:.1f} sequences at {context:,.0f} tokens",
             (0.0, 0.0, batch, context)),
        _bar(run, f"mixed step, {chunk:,.0f} prefill tokens at {start:,.0f} and the same decodes",
             (chunk, start, batch, context)),
    )  # fmt: skip


# Time that neither FLOPs nor HBM bandwidth shortens.
_SERIAL = {"collectives": "links", "overhead": "latency"}


def _bar(run: Run, title: str, step: tuple[float, float, float, float]) -> StepBar:
    rows = run.law.breakdown(*step)
    return StepBar(
        title=title,
        seconds={name: float(row["seconds"]) for name, row in rows.items()},
        bound={
            name: _SERIAL.get(GROUPS.get(name, ""), str(row["bound"])) for name, row in rows.items()
        },
    )
