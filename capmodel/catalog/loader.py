"""Read catalog files: JSON for models (the field's own format), YAML for the rest."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from ..errors import IngestError, SpecError, nearest_names
from ..spec.accelerator import Accelerator
from ..spec.distributions import LognormalMixture
from ..spec.model import Model
from ..spec.node import Node, split_node_name
from ..spec.prices import Tariff
from ..spec.workload import Workload
from ..units import MIB, parse_quantity

DATA = Path(__file__).parent / "data"
KINDS = ("models", "accelerators", "workloads", "prices", "builds", "efficiencies")
Bundle = dict[str, Any]

_SafeLoader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def names(kind: str) -> list[str]:
    """Return the catalog's names of a kind: models, accelerators, workloads, prices, builds."""
    return sorted(path.stem for path in _files(kind))


def _files(kind: str) -> Iterator[Path]:
    if kind not in KINDS:
        raise SpecError(f"the catalog has no {kind!r}.", nearest=nearest_names(kind, KINDS))
    return (p for p in (DATA / kind).iterdir() if p.suffix in (".json", ".yaml"))


@cache
def raw_item(kind: str, name: str) -> Bundle:
    """Return one catalog file as it stands, provenance included.

    Raises
    ------
    SpecError
        If the name is unknown; the message has the nearest names.
    """
    known = {path.stem.casefold(): path for path in _files(kind)}
    path = known.get(name.casefold())
    if path is None:
        singular = kind.rstrip("s")
        stems = [p.stem for p in known.values()]
        raise SpecError(
            f"unknown {singular} {name!r}; `capmodel list {kind}` has them all.",
            field=singular,
            nearest=nearest_names(name, stems),
        )
    text = path.read_text(encoding="utf-8")
    item: Bundle = json.loads(text) if path.suffix == ".json" else yaml.load(text, _SafeLoader)
    return {**item, "name": item.get("name", path.stem)}


@cache
def model(name: str) -> Model:
    """Return a catalog model by name."""
    from ..ingest.hf_config import model_from_config

    item = raw_item("models", name)
    stem = next(n for n in names("models") if n.casefold() == name.casefold())
    return model_from_config(
        item["config"], name=stem, published=item.get("published"), source=item.get("source", "")
    )


@cache
def accelerator(name: str) -> Accelerator:
    """Return a catalog accelerator by name."""
    item = raw_item("accelerators", name)
    node_facts = item.get("node", {})
    host = item.get("host", {})
    scale_up = item.get("scale_up", {})
    return Accelerator(
        name=item["name"],
        vendor=item["vendor"],
        flop_per_s={p: parse_quantity(v, "FLOP/s", p) for p, v in item["flop_per_s"].items()},
        hbm_bytes=parse_quantity(item["hbm"], "B", "hbm"),
        hbm_bytes_per_s=parse_quantity(item["hbm_bandwidth"], "B/s", "hbm_bandwidth"),
        scale_up_bytes_per_s=parse_quantity(scale_up.get("rate", 0), "B/s", "scale_up"),
        scale_up_domain=int(scale_up.get("domain", 1)),
        host_bytes_per_s=parse_quantity(host.get("rate", 0), "B/s", "host"),
        nic_bytes_per_s=parse_quantity(item.get("nic", 0), "bit/s", "nic") / 8,
        gpus_per_node=int(node_facts.get("gpus", 8)),
        host_dram_bytes=parse_quantity(node_facts.get("dram", 0), "B", "dram"),
        power_w=parse_quantity(item.get("power", 0), "W", "power"),
        gpu_hour_usd={k: float(v) for k, v in item.get("gpu_hour_usd", {}).items()},
        default_price_basis=item.get("default_price_basis", ""),
        provenance=item.get("provenance", {}),
        estimated=bool(item.get("estimated", False)),
    )


def node(text: str, nodes: int = 1) -> Node:
    """Return the node that ``8xB300`` names, `nodes` of them for one engine replica."""
    gpus, part = split_node_name(text)
    return Node(accelerator=accelerator(part), gpus=gpus, nodes=nodes)


@cache
def workload(name: str) -> Workload:
    """Return a catalog workload by name."""
    return workload_from_mapping(raw_item("workloads", name))


def workload_from_mapping(item: Bundle) -> Workload:
    """Return the workload that a catalog entry or a user's file describes."""
    known = {
        "name", "request_tokens", "tree_tokens", "output_tokens", "turns", "think_time",
        "theoretical_hit_rate", "new_tokens", "shared_prefix_tokens", "max_context_tokens",
        "intervals", "provenance",
    }  # fmt: skip
    for key in item:
        if key not in known:
            raise SpecError(
                f"workload: unknown key {key!r}.", field=key, nearest=nearest_names(key, known)
            )
    try:
        request, output = item["request_tokens"], item["output_tokens"]
        tree: Any = item.get("tree_tokens", request)
        gap = item["think_time"]
        return Workload(
            name=str(item.get("name", "workload")),
            request_tokens_mean=float(request["mean"]),
            request_tokens_cv=float(request["cv"]),
            tree_tokens_mean=float(tree["mean"]),
            tree_tokens_cv=float(tree["cv"]),
            output_tokens_mean=float(output["mean"]),
            output_tokens_cv=float(output["cv"]),
            turns_mean=float(item["turns"]["mean"]),
            theoretical_hit_rate=float(item["theoretical_hit_rate"]),
            think_time=LognormalMixture(
                weights=tuple(float(w) for w in gap["weights"]),
                medians=tuple(float(m) for m in gap["medians_s"]),
                sigmas=tuple(float(s) for s in gap["sigmas"]),
                cap=float(gap.get("cap_s", "inf")),
            ),
            turns_cv=float(item["turns"].get("cv", 1.0)),
            new_tokens_cv=float(item.get("new_tokens", {}).get("cv", 1.0)),
            shared_prefix_tokens=float(item.get("shared_prefix_tokens", 0.0)),
            max_context_tokens=float(item.get("max_context_tokens", "inf")),
            intervals={k: (float(a), float(b)) for k, (a, b) in item.get("intervals", {}).items()},
            provenance=item.get("provenance", {}),
        )
    except (KeyError, TypeError, ValueError) as error:
        if isinstance(error, SpecError):
            raise
        raise SpecError(f"workload {item.get('name')!r}: missing or malformed {error}.") from error


@cache
def tariff(name: str) -> Tariff:
    """Return a catalog price floor by name."""
    item = raw_item("prices", name)
    return Tariff(
        input_usd_per_mtok=float(item["input_usd_per_mtok"]),
        cached_input_usd_per_mtok=float(item["cached_input_usd_per_mtok"]),
        output_usd_per_mtok=float(item["output_usd_per_mtok"]),
        date=str(item["date"]),
        source=str(item["source"]),
    )


def gpu_hour_usd(part: Accelerator, basis: str | None = None) -> tuple[float, str]:
    """Return (price per GPU-hour [USD], basis) of an accelerator.

    Raises
    ------
    SpecError
        If the catalog has no price of that basis.
    """
    key = basis or part.default_price_basis
    if key not in part.gpu_hour_usd:
        raise SpecError(
            f"no GPU-hour price {key!r} for {part.name}; give --gpu-hour-usd.",
            field="gpu_hour_usd",
            nearest=sorted(part.gpu_hour_usd),
        )
    return part.gpu_hour_usd[key], key


@cache
def efficiencies(name: str) -> Bundle:
    """Return a table of measured efficiencies with intervals and sources."""
    return raw_item("efficiencies", name)


def read_mapping(path: Path, max_bytes: int = 4 * MIB) -> Bundle:
    """Return the mapping in a YAML, TOML or JSON file; data only, size and shape checked.

    Raises
    ------
    IngestError
        If the file is missing, too large, malformed, or not a mapping.
    """
    if not path.is_file():
        what = "a folder, not a file." if path.is_dir() else "no such file."
        raise IngestError(what, file=str(path))
    if path.stat().st_size > max_bytes:
        raise IngestError(f"larger than {max_bytes} bytes.", file=str(path))
    try:
        text = path.read_text(encoding="utf-8-sig")
        if path.suffix == ".json":
            value = json.loads(text)
        elif path.suffix == ".toml":
            value = tomllib.loads(text)
        else:
            value = yaml.load(text, _SafeLoader)
    except (ValueError, yaml.YAMLError, RecursionError) as error:
        message = " ".join(str(error).split())
        raise IngestError(f"cannot be read: {message}", file=str(path)) from error
    if not isinstance(value, dict):
        raise IngestError("must hold a mapping of keys to values.", file=str(path))
    return value


def reference_build(model_name: str, engine: str, version: str = "") -> Bundle:
    """Return the recorded build of a model on an engine, or an empty mapping.

    Parameters
    ----------
    model_name, engine : str
        Catalog model and engine.
    version : str
        Build; empty takes the first recorded one.
    """
    for name in names("builds"):
        item = raw_item("builds", name)
        same = item.get("model") == model_name and item.get("engine") == engine
        if same and version in ("", str(item.get("engine_version", ""))):
            return item
    return {}
