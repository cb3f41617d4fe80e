"""Drawing surfaces: axes on request, and pictures that come out the same every time."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

from ..errors import MissingExtraError

# Okabe-Ito colours stay apart for every kind of colour vision; lines also differ in dash.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#F0E442", "#000000")


def new_axes(ax: Any = None, *, size: tuple[float, float] = (7.2, 4.0)) -> Any:
    """Return the axes given, or those of a new figure of `size` [inch]."""
    if ax is not None:
        return ax
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingExtraError("matplotlib", "plot") from error
    return Figure(figsize=size, layout="constrained").subplots()


def save(axes: Any, path: str | Path) -> None:
    """Write the figure of some axes to a file whose suffix names the format."""
    import matplotlib

    path = Path(path)
    # Fixed salt and no date: the same answer gives the same bytes.
    with matplotlib.rc_context({"svg.hashsalt": "capmodel"}):
        vector = path.suffix.lower() == ".svg"
        axes.figure.savefig(path, bbox_inches="tight", metadata={"Date": None} if vector else None)


def inline_svg(axes: Any) -> str:
    """Return the figure of some axes as an SVG element for a page."""
    import matplotlib

    buffer = io.StringIO()
    with matplotlib.rc_context({"svg.hashsalt": "capmodel"}):
        axes.figure.savefig(buffer, format="svg", bbox_inches="tight", metadata={"Date": None})
    text = buffer.getvalue()
    return text[text.index("<svg") :]
