"""``capmodel list``: what the catalog holds."""

from __future__ import annotations

import json
from typing import Any

import click

from .. import catalog
from ..units import GIB, TERA

KINDS = ("models", "accelerators", "nodes", "workloads", "prices")


@click.command("list")
@click.argument("kind", type=click.Choice(KINDS))
@click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout.")
def command(kind: str, as_json: bool) -> None:
    """The catalog: models, accelerators, nodes, workloads or prices, with their key figures."""
    items = ROWS[kind]()
    if as_json:
        click.echo(json.dumps({"items": items}, allow_nan=False))
        return
    for item in items:
        facts = ", ".join(f"{k} {v}" for k, v in item.items() if k not in ("name", "source"))
        click.echo(f"{item['name']:<28} {facts}")


def _models() -> list[dict[str, Any]]:
    rows = []
    for name in catalog.names("models"):
        item = catalog.raw_item("models", name)
        published = item.get("published", {})
        rows.append(
            {
                "name": name,
                "hf_name": item.get("name"),
                "layers": item["config"].get("num_hidden_layers"),
                "published_params": published.get("total_params"),
                "source": item.get("source"),
            }
        )
    return rows


def _accelerators() -> list[dict[str, Any]]:
    rows = []
    for name in catalog.names("accelerators"):
        part = catalog.accelerator(name)
        rows.append(
            {
                "name": name,
                "hbm_gib": round(part.hbm_bytes / GIB, 1),
                "hbm_tb_per_s": part.hbm_bytes_per_s / TERA,
                "bf16_tflop_per_s": part.flop_per_s["bf16"] / TERA,
                "gpu_hour_usd": part.gpu_hour_usd.get(part.default_price_basis),
                "price_basis": part.default_price_basis or None,
                "source": part.provenance.get("hbm"),
            }
        )
    return rows


def _nodes() -> list[dict[str, Any]]:
    rows = []
    for name in catalog.names("accelerators"):
        part = catalog.accelerator(name)
        rows.append(
            {
                "name": f"{part.gpus_per_node}x{name}",
                "hbm_gib": round(part.gpus_per_node * part.hbm_bytes / GIB),
                "host_dram_gib": round(part.host_dram_bytes / GIB) or None,
                "scale_up_domain_gpus": part.scale_up_domain,
                "source": part.provenance.get("node") or part.provenance.get("hbm"),
            }
        )
    return rows


def _workloads() -> list[dict[str, Any]]:
    rows = []
    for name in catalog.names("workloads"):
        load = catalog.workload(name)
        rows.append(
            {
                "name": name,
                "request_tokens_mean": load.request_tokens_mean,
                "tree_tokens_mean": load.tree_tokens_mean,
                "output_tokens_mean": load.output_tokens_mean,
                "turns_mean": load.turns_mean,
                "theoretical_hit_rate": load.theoretical_hit_rate,
                "think_time_mean_s": round(load.think_time.mean(), 2),
                "source": load.provenance.get("request_tokens"),
            }
        )
    return rows


def _prices() -> list[dict[str, Any]]:
    rows = []
    for name in catalog.names("prices"):
        floor = catalog.tariff(name)
        rows.append(
            {
                "name": name,
                "input_usd_per_mtok": floor.input_usd_per_mtok,
                "cached_input_usd_per_mtok": floor.cached_input_usd_per_mtok,
                "output_usd_per_mtok": floor.output_usd_per_mtok,
                "date": floor.date,
                "source": floor.source,
            }
        )
    return rows


ROWS = {
    "models": _models,
    "accelerators": _accelerators,
    "nodes": _nodes,
    "workloads": _workloads,
    "prices": _prices,
}
