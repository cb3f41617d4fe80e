"""The hit-rate surface as a table, JSON and a picture."""

from __future__ import annotations

import html
import math
from dataclasses import asdict, dataclass, field
from typing import Any

from ..errors import MissingExtraError
from ..units import format_count


@dataclass(frozen=True, slots=True, kw_only=True)
class CurveRow:
    """One point of the surface.

    Parameters
    ----------
    concurrency : int
        Live sessions C [1].
    capacity_tokens : float
        Cache B [tokens].
    hit_rate : float
        Token-weighted share of prompts found in cache [1].
    theoretical_hit_rate : float
        The same of an infinite cache [1].
    """

    concurrency: int
    capacity_tokens: float
    hit_rate: float
    theoretical_hit_rate: float


@dataclass(frozen=True, slots=True, kw_only=True)
class CurveResult:
    """Hit rates over concurrency and capacity, and what they rest on.

    Parameters
    ----------
    rows : tuple of CurveRow
        Points, capacities running fastest.
    method, service, source : str
        How it was computed, the service model, and what from.
    think_time_cap_s : float
        Cap on gaps, part of every answer; infinity for none [s].
    half_widths : tuple of float
        Half of the 95% interval over seeds for exact replays, per row [1].
    cold_hit_rates, warm_hit_rates : tuple of float
        With feedback, the bounds where the queue has two operating points, per row [1].
    sensitivities : dict of str to float
        Mean change of the hit rate over each input's interval [1].
    notes : tuple of str
        Assumptions and what was left out.
    """

    rows: tuple[CurveRow, ...]
    method: str
    service: str
    source: str
    think_time_cap_s: float
    half_widths: tuple[float, ...] = ()
    cold_hit_rates: tuple[float, ...] = ()
    warm_hit_rates: tuple[float, ...] = ()
    sensitivities: dict[str, float] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON object of the contract."""
        cap = self.think_time_cap_s
        extra: dict[str, Any] = {}
        if self.half_widths:
            extra["half_widths"] = list(self.half_widths)
        if self.warm_hit_rates:
            extra["cold_hit_rates"] = list(self.cold_hit_rates)
            extra["warm_hit_rates"] = list(self.warm_hit_rates)
        if self.sensitivities:
            extra["sensitivities"] = dict(self.sensitivities)
        return {
            "workload": self.source,
            "method": self.method,
            "service": self.service,
            "think_time_cap_s": cap if math.isfinite(cap) else None,
            "rows": [asdict(row) for row in self.rows],
            "notes": list(self.notes),
            **extra,
        }

    def to_frame(self) -> Any:
        """Return the rows as a pandas data frame."""
        try:
            import pandas
        except ImportError as error:
            raise MissingExtraError("pandas", "frames") from error
        return pandas.DataFrame([asdict(row) for row in self.rows])

    def plot(self, ax: Any = None, over: CurveResult | None = None) -> Any:
        """Draw hit rate over capacity, a line per concurrency; `over` is drawn as dots."""
        try:
            from matplotlib import pyplot
        except ImportError as error:
            raise MissingExtraError("matplotlib", "plot") from error
        axes = pyplot.subplots()[1] if ax is None else ax
        for concurrency in dict.fromkeys(row.concurrency for row in self.rows):
            points = [row for row in self.rows if row.concurrency == concurrency]
            x = [row.capacity_tokens for row in points]
            line = axes.plot(x, [row.hit_rate for row in points], label=f"C = {concurrency}")[0]
            if over is not None:
                dots = [row for row in over.rows if row.concurrency == concurrency]
                axes.plot(
                    [row.capacity_tokens for row in dots], [row.hit_rate for row in dots],
                    linestyle="none", marker="o", color=line.get_color(),
                )  # fmt: skip
        ceiling = max(row.theoretical_hit_rate for row in self.rows)
        axes.axhline(ceiling, linewidth=0.8, linestyle=":", color="0.4")
        axes.set_xlabel("cache [tokens]")
        axes.set_ylabel("hit rate of prompt tokens [1]")
        shown = self.method if over is None else f"{self.method} (lines), {over.method} (dots)"
        axes.set_title(f"{self.source}: {shown}, gaps <= {self.think_time_cap_s:g} s")
        axes.set_ylim(0.0, 1.0)
        axes.legend()
        return axes

    def _heading(self) -> str:
        cap = self.think_time_cap_s
        gaps = f"gaps <= {cap:g} s" if math.isfinite(cap) else "gaps not capped"
        return f"{self.source} | {self.method} | service {self.service} | {gaps}"

    def _table(self) -> tuple[list[int], list[float], dict[tuple[int, float], float]]:
        lanes = list(dict.fromkeys(row.concurrency for row in self.rows))
        rooms = list(dict.fromkeys(row.capacity_tokens for row in self.rows))
        return lanes, rooms, {(r.concurrency, r.capacity_tokens): r.hit_rate for r in self.rows}

    def __str__(self) -> str:
        lanes, rooms, values = self._table()
        ceiling = self.rows[0].theoretical_hit_rate
        lines = [
            self._heading(),
            f"ceiling   {ceiling:.3f} of prompt tokens",
            "C \\ B  " + "".join(f"{format_count(room):>8}" for room in rooms),
        ]
        for lane in lanes:
            lines.append(f"{lane:>5}  " + "".join(f"{values[lane, room]:>8.3f}" for room in rooms))
        for name, move in sorted(self.sensitivities.items(), key=lambda item: -abs(item[1])):
            lines.append(f"decides   {name}: {move:+.3f}")
        lines.extend(f"note      {note}" for note in self.notes)
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        lanes, rooms, values = self._table()
        head = "".join(f"<th>{format_count(room)}</th>" for room in rooms)
        body = "".join(
            f"<tr><th>{lane}</th>"
            + "".join(f"<td>{values[lane, room]:.3f}</td>" for room in rooms)
            + "</tr>"
            for lane in lanes
        )
        caption = html.escape(self._heading())
        return f"<table><caption>{caption}</caption><tr><th>C</th>{head}</tr>{body}</table>"
