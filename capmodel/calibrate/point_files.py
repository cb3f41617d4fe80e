"""Files of measured points, told apart by what they hold."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ..errors import IngestError
from .benchmark_json import read_benchmark_json
from .metrics_scrape import Window, read_scrape, window
from .observation import Observation
from .points_csv import read_points_csv

SCRAPE_SUFFIXES = ("", ".prom", ".txt", ".metrics")


def is_scrape(path: Path) -> bool:
    """Whether a file's name is that of a metrics exposition."""
    return path.suffix.lower() in SCRAPE_SUFFIXES


def read_window(paths: Sequence[Path], seconds: float | None) -> Window:
    """Return what two scrapes say.

    Raises
    ------
    IngestError
        If there are not two.
    """
    if len(paths) != 2:
        raise IngestError(
            f"{len(paths)} scrape(s) of /metrics: give two, the earlier one first.",
            file=", ".join(str(path) for path in paths),
        )
    return window(read_scrape(paths[0]), read_scrape(paths[1]), seconds)


def read_points(
    paths: Sequence[str | Path],
    *,
    gpus: int,
    concurrency: int | None = None,
    seconds: float | None = None,
) -> list[Observation]:
    """Return the measured points of CSV files, benchmark results and a pair of scrapes.

    Parameters
    ----------
    paths : sequence of path
        Files.
    gpus : int
        Accelerators, for figures per accelerator [1].
    concurrency : int, optional
        Live sessions where a file does not say [1].
    seconds : float, optional
        Time between two scrapes [s].

    Raises
    ------
    IngestError
        With file and line.
    """
    files = [Path(path) for path in paths]
    for file in files:
        if not file.is_file():
            raise IngestError("no such file.", file=str(file))
    points: list[Observation] = []
    scrapes = [file for file in files if is_scrape(file)]
    for file in files:
        if file.suffix.lower() == ".csv":
            points += read_points_csv(file, gpus)
        elif file.suffix.lower() == ".json":
            points += read_benchmark_json(file, gpus, concurrency)
        elif file not in scrapes:
            raise IngestError("expected .csv, .json, or two scrapes (.prom, .txt).", file=str(file))
    if scrapes:
        found = read_window(scrapes, seconds)
        if concurrency is None:
            raise IngestError(
                "scrapes do not say how many sessions live; give -c.", file=found.source
            )
        points.append(found.observation(concurrency))
    return points
