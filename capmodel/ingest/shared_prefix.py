"""inference-perf shared-prefix settings: groups of prompts that share a system prompt."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from ..errors import IngestError
from .columns import LARGEST_NUMBER, ColumnBuilder, SessionColumns

# inference-perf renamed these keys once; both names are in use.
_KEYS = {
    "groups": ("num_unique_system_prompts", "num_groups"),
    "prompts": ("num_users_per_system_prompt", "num_prompts_per_group"),
    "system": ("system_prompt_len",),
    "question": ("question_len",),
    "output": ("output_len",),
}
LARGEST_REQUESTS = 10_000_000


def _setting(block: dict[str, Any], key: str, path: str) -> int:
    for name in _KEYS[key]:
        if name in block:
            value = block[name]
            if isinstance(value, bool) or not isinstance(value, int):
                raise IngestError(f"{name}: expected a whole number, got {value!r}.", file=path)
            if not 0 <= value <= LARGEST_NUMBER:
                raise IngestError(f"{name}: needs 0 to {LARGEST_NUMBER:g}.", file=path)
            return value
    raise IngestError(f"shared_prefix: {_KEYS[key][0]} is missing.", file=path)


def read_shared_prefix(path: str | Path) -> SessionColumns:
    """Return the requests that an inference-perf ``shared_prefix`` configuration sends.

    A group is a session: its prompts follow each other, share the system prompt, and come back
    after the other groups' prompts. With a rate in ``load.stages`` the gap of a group is the
    number of groups over it; without one it is zero.
    """
    name = str(path)
    try:
        document = yaml.safe_load(Path(path).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise IngestError(f"cannot read the file: {error}.", file=name) from error
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = None if mark is None else mark.line + 1
        raise IngestError("expected a YAML configuration.", file=name, line=line) from error
    data = document.get("data") if isinstance(document, dict) else None
    block = data.get("shared_prefix") if isinstance(data, dict) else None
    if not isinstance(block, dict):
        raise IngestError("expected data.shared_prefix with its settings.", file=name)
    value = {key: _setting(block, key, name) for key in _KEYS}
    groups, prompts = value["groups"], value["prompts"]
    if groups * prompts < 1 or groups * prompts > LARGEST_REQUESTS:
        raise IngestError(f"{groups} x {prompts} requests are not usable.", file=name)
    load = document.get("load") or {}
    stages = load.get("stages") if isinstance(load, dict) else None
    rate = 0.0
    if isinstance(stages, list) and stages and isinstance(stages[0], dict):
        rate = float(stages[0].get("rate") or 0.0)
    gap = groups / rate if rate > 0 else 0.0
    tokens = float(value["system"] + value["question"])
    builder = ColumnBuilder()
    for _ in range(groups):
        builder.start_session()
        for turn in range(prompts):
            builder.add(
                input_tokens=tokens,
                prefix_tokens=float(value["system"]) if turn else 0.0,
                output_tokens=float(value["output"]),
                think_s=gap if turn else 0.0,
                service_s=0.0,
            )
    return builder.columns(name, ["a group of prompts is one session; gap = groups / rate"])
