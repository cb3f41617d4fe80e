"""Print the README's command of a name: the code block after ``<!-- command: NAME -->``."""

import re
import sys
from pathlib import Path

text = (Path(__file__).parent.parent / "README.md").read_text(encoding="utf-8")
name = re.escape(sys.argv[1])
match = re.search(rf"<!-- command: {name} -->\s*```sh\n(.*?)```", text, flags=re.DOTALL)
if match is None:
    sys.exit(f"README.md has no command named {sys.argv[1]!r}")
print(match.group(1).strip())
