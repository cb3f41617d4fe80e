"""The command that reproduces an answer, from the options it was asked with."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any

FLAGS = {"node": "--on", "scenario_file": "--scenario", "concurrency": "-c"}


def command_line(command: str, given: Mapping[str, Any]) -> str:
    """Return ``capmodel COMMAND ...`` with every option that was given, quoted for a shell."""
    words = ["capmodel", command]
    if given.get("model") is not None:
        words.append(str(given["model"]))
    for name, value in given.items():
        if name == "model" or value is None or value is False:
            continue
        flag = FLAGS.get(name, "--" + name.replace("_", "-"))
        words += [flag] if value is True else [flag, str(value)]
    return shlex.join(words)
