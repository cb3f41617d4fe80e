"""Lines of a text file, plain or gzip, with their numbers; bad files end in one clear message."""

from __future__ import annotations

import gzip
import io
import zlib
from collections.abc import Iterator
from pathlib import Path

from ..errors import IngestError

# A line of a trace is at most a few MB of block ids; more is not a trace.
LONGEST_LINE_BYTES = 64 * 2**20
LARGEST_FILE_BYTES = 16 * 2**30
_GZIP_MAGIC = b"\x1f\x8b"


class LineStream:
    """Iterates over (line number, text) and remembers whether the last line was complete.

    Parameters
    ----------
    path : path
        The file; gzip is recognised by its first bytes.
    limit_bytes : int
        Most bytes to read after decompression [bytes].
    """

    def __init__(self, path: str | Path, limit_bytes: int = LARGEST_FILE_BYTES):
        self.path = str(path)
        self.limit_bytes = limit_bytes
        self.line = 0
        self.complete = True

    def __iter__(self) -> Iterator[tuple[int, str]]:
        read = 0
        try:
            with open(self.path, "rb") as raw:
                packed = raw.read(2) == _GZIP_MAGIC
                raw.seek(0)
                stream: io.BufferedIOBase = gzip.GzipFile(fileobj=raw) if packed else raw
                while True:
                    data = stream.readline(LONGEST_LINE_BYTES + 1)
                    if not data:
                        return
                    self.line += 1
                    read += len(data)
                    if len(data) > LONGEST_LINE_BYTES:
                        raise self.error("the line is longer than 64 MiB.")
                    if read > self.limit_bytes:
                        raise self.error(
                            f"the file unpacks to more than {self.limit_bytes} bytes; split it."
                        )
                    self.complete = data.endswith(b"\n")
                    yield self.line, data.decode("utf-8-sig" if self.line == 1 else "utf-8")
        except UnicodeDecodeError as error:
            raise self.error("expected UTF-8 text.") from error
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            self.line += 1
            raise self.error("the gzip file is truncated or damaged.") from error
        except OSError as error:
            reason = error.strerror or "cannot be read"
            raise IngestError(f"cannot read the file: {reason}.", file=self.path) from error

    def error(self, message: str) -> IngestError:
        """Return the error that names this file and the current line."""
        return IngestError(message, file=self.path, line=max(self.line, 1))
