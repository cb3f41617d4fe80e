"""Hold README.md to what the tool prints: every console block is run and compared.

With ``--write`` the blocks are renewed in place.
"""

from __future__ import annotations

import contextlib
import io
import re
import shlex
import sys
from pathlib import Path

from capmodel.cli import main

README = Path(__file__).parent.parent / "README.md"
BLOCK = re.compile(r"```console\n\$ (capmodel [^\n]*)\n(.*?)```", flags=re.DOTALL)


def output_of(command: str) -> str:
    """Return what a capmodel command prints, errors included."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            main(shlex.split(command)[1:])
        except SystemExit as stop:
            if stop.code not in (0, 3):
                raise
    return out.getvalue().rstrip() + "\n" + err.getvalue()


def renewed(text: str) -> str:
    """Return the text with every console block as the tool prints it now."""
    return BLOCK.sub(lambda m: f"```console\n$ {m[1]}\n{output_of(m[1])}```", text)


if __name__ == "__main__":
    before = README.read_text(encoding="utf-8")
    after = renewed(before)
    if "--write" in sys.argv:
        README.write_text(after, encoding="utf-8")
    elif after != before:
        sys.exit("README.md is not what the tool prints; run python .ci/readme_console.py --write")
