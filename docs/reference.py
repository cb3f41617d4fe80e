"""docs/reference.md from the docstrings: run this file to renew the page."""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import re
from pathlib import Path
from typing import Any

import capmodel

PAGE = Path(__file__).with_suffix(".md")
# What goes in and what comes out; the functions are whatever the package calls public.
CLASSES = {
    "capmodel.scenario": ["Scenario"],
    "capmodel.spec.workload": ["Workload"],
    "capmodel.spec.deployment": ["Deployment", "Offload", "Speculation"],
    "capmodel.memory.kv_budget": ["KvBudget"],
    "capmodel.results": ["Estimate", "Sweep", "Cliff", "HitRate", "NearestCase", "WorkingSetEnd"],
    "capmodel.optimize.plan": ["Plan"],
    "capmodel.report.explain": ["Explanation", "Step", "StepBar"],
}
SECTION = re.compile(r"^(\w[\w ]*)\n-{3,}$", flags=re.MULTILINE)


def entry(module: str, name: str) -> str:
    """Return one public object as markdown: signature, docstring, members of a class."""
    item = getattr(importlib.import_module(module), name)
    lines = [f"## `{name}`", "", f"`{module}`", ""]
    if inspect.isfunction(item):
        lines += ["```python", f"{name}{inspect.signature(item)}", "```", ""]
    lines.append(text(item))
    if inspect.isclass(item):
        is_data = dataclasses.is_dataclass(item)
        fields = {field.name for field in dataclasses.fields(item)} if is_data else set()
        members = [
            f"- `{key}`: {summary(value)}"
            for key, value in vars(item).items()
            if not key.startswith("_") and key not in fields and summary(value)
        ]
        lines += ["", "Members:", "", *members] if members else []
    return "\n".join(lines)


def text(item: Any) -> str:
    """Return a numpydoc docstring with its sections in bold and its lists fenced."""
    head, *rest = SECTION.split(inspect.cleandoc(item.__doc__))
    parts = [head.strip()]
    for title, body in zip(rest[::2], rest[1::2], strict=True):
        parts.append(f"**{title}**\n\n```text\n{body.strip()}\n```")
    return "\n\n".join(parts)


def summary(value: Any) -> str:
    """Return the first line of a member's docstring."""
    doc = inspect.getdoc(value) if callable(value) or hasattr(value, "__doc__") else None
    return (doc or "").split("\n")[0]


def page() -> str:
    """Return the whole page."""
    entries = [
        entry(f"capmodel.{module}", name)
        for name, module in capmodel._PUBLIC.items()
        if name != "Scenario"
    ]
    entries += [entry(module, name) for module, names in CLASSES.items() for name in names]
    head = "# Reference\n\nFrom the docstrings; `python docs/reference.py` renews it.\n\n"
    return head + "\n\n".join(entries) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
