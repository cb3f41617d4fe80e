"""Fixed-length benchmark points: what was run, what was measured, and what the law says."""

from __future__ import annotations

import csv
import math
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from ..catalog import accelerator, model
from ..errors import CapmodelError
from ..memory.budget import kv_budget
from ..service.closed_loop import FixedLengthPoint, fixed_length_point
from ..service.engine_law import engine_law
from ..service.roofline import EngineConstants
from ..service.step_law import StepLaw
from ..spec.deployment import Deployment, Speculation
from ..spec.node import Node

DATA = Path(__file__).parent / "data" / "service_cases.csv"
_NO_LIMIT = 100_000.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceCase:
    """One measured point of a benchmark without prefix reuse.

    Parameters
    ----------
    id, source, date : str
        Row, repository path, day.
    model, accelerator : str
        Catalog names.
    node : tuple of (int, int)
        Accelerators per node, nodes [1].
    deployment : Deployment
        Engine, layout, precision.
    accepted_tokens : float, optional
        Accepted length recorded with the run [tokens].
    input_tokens, output_tokens, concurrency : float
        Shape of the load [tokens], [tokens], [1].
    burst_share : float
        Share of requests that arrive all together [1].
    requests : float, optional
        Requests of a finite run that starts at once [1].
    ttft_s, tpot_s, output_tokens_per_s, total_tokens_per_s : float, optional
        Measured [s], [s], [tokens/s], [tokens/s].
    unusable : str
        Why the row is not scored, empty if it is.
    """

    id: str
    source: str
    date: str
    model: str
    accelerator: str
    node: tuple[int, int]
    deployment: Deployment | None
    accepted_tokens: float | None
    input_tokens: float
    output_tokens: float
    concurrency: float
    burst_share: float
    requests: float | None
    ttft_s: float | None
    tpot_s: float | None
    output_tokens_per_s: float | None
    total_tokens_per_s: float | None
    unusable: str

    @property
    def collection(self) -> str:
        """One team's campaign: pinned documents of a repository together, a post or PR alone."""
        pinned = "/blob/" in self.source and not {"blog", "_posts"} & set(self.source.split("/"))
        if pinned:
            return "/".join(self.source.split("/")[:2])
        return self.source.split("#")[0]

    @property
    def configuration(self) -> tuple[object, ...]:
        """What identical configurations share, engine version and source aside."""
        assert self.deployment is not None
        return (
            self.model, self.accelerator, self.node, replace(self.deployment, engine_version=""),
            round(self.input_tokens, -2), round(self.output_tokens, -2), self.concurrency,
        )  # fmt: skip


def _number(text: str) -> float | None:
    return None if text == "" else _NO_LIMIT if text == "max" else float(text)


@cache
def cases() -> tuple[ServiceCase, ...]:
    """Return every row, usable or not, in file order."""
    with DATA.open(encoding="utf-8", newline="") as file:
        return tuple(_case(row) for row in csv.DictReader(file))


def _case(row: dict[str, str]) -> ServiceCase:
    unusable = row["unusable"]
    deployment = None if unusable else _deployment(row)
    nodes = int(row["nodes"] or 1)
    gpus = int(float(row["gpus"] or 1))
    return ServiceCase(
        id=row["id"],
        source=row["source"],
        date=row["date"],
        model=row["model"],
        accelerator=row["accelerator"],
        node=(math.ceil(gpus / nodes), nodes),
        deployment=deployment,
        accepted_tokens=_number(row["accepted"]),
        input_tokens=_number(row["input_tokens"]) or 0.0,
        output_tokens=_number(row["output_tokens"]) or 0.0,
        concurrency=_number(row["concurrency"]) or 0.0,
        burst_share=_number(row["burst_share"]) or 0.0,
        requests=_number(row["requests"]),
        ttft_s=_number(row["ttft_s"]),
        tpot_s=_number(row["tpot_s"]),
        output_tokens_per_s=_number(row["output_tokens_per_s"]),
        total_tokens_per_s=_number(row["total_tokens_per_s"]),
        unusable=unusable,
    )


def _deployment(row: dict[str, str]) -> Deployment:
    drafted = row["draft"]
    return Deployment(
        engine=row["engine"],
        engine_version=row["version"],
        tp=int(row["tp"]),
        pp=int(row["pp"]),
        dp=int(row["dp"]),
        ep=int(row["ep"]),
        dcp=int(row["dcp"]),
        weights=row["weights"],
        kv_dtype=row["kv_dtype"],
        speculation=Speculation(name=drafted, draft_tokens=int(float(row["draft_tokens"])))
        if drafted
        else None,
    )


def node_of(case: ServiceCase) -> Node:
    """Return the accelerators the case ran on."""
    gpus, nodes = case.node
    return Node(accelerator=accelerator(case.accelerator), gpus=gpus, nodes=nodes)


def law_of(case: ServiceCase, constants: EngineConstants | None = None) -> StepLaw:
    """Return the step law of the case's deployment, per data-parallel rank."""
    assert case.deployment is not None
    return engine_law(
        model(case.model),
        node_of(case),
        case.deployment,
        constants=constants,
        accepted_tokens=case.accepted_tokens,
    )


@cache
def running_limit(case: ServiceCase) -> float:
    """Requests of this shape that one data-parallel rank's KV pool holds at once [1]."""
    assert case.deployment is not None
    length = case.input_tokens + 0.5 * case.output_tokens
    try:
        budget = kv_budget(model(case.model), node_of(case), case.deployment)
    except CapmodelError:
        return math.inf
    tokens = budget.kv_tokens / case.deployment.dp
    return max(1.0, tokens / length) if tokens > 0 else math.inf


def prediction(case: ServiceCase, law: StepLaw) -> FixedLengthPoint:
    """Return what the law says of the case, output over all data-parallel ranks."""
    assert case.deployment is not None
    ranks = case.deployment.dp
    replicas = max(1, round(case.node[0] * case.node[1] / case.deployment.gpus))
    shares = ranks * replicas
    # No limit on clients: the pool and the engine's own limit decide, with nobody waiting outside.
    limit = min(running_limit(case), float(law.max_sequences))
    clients = max(1.0, min(case.concurrency / shares, _NO_LIMIT))
    clients = min(clients, limit) if case.concurrency >= _NO_LIMIT else clients
    point = fixed_length_point(
        law,
        case.input_tokens,
        case.output_tokens,
        clients,
        burst_share=case.burst_share,
        running_limit=limit,
    )
    return point._replace(output_tokens_per_s=point.output_tokens_per_s * shares)
