"""How much memory a command takes that is its own: anonymous pages, as Linux counts them.

Pages of mapped files are left out: the system takes them back when it needs them.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.support.machine.children import child

_ROOT: Final = Path(__file__).resolve().parents[3]
_EVERY_S: Final = 0.002
_FIELD: Final = "RssAnon:"


@dataclass(frozen=True, slots=True)
class Measured:
    """One run of a command.

    Attributes:
        exit_code: How it ended.
        anonymous_bytes: The most anonymous memory that it was seen to have.
        elapsed_s: How long it took.
        output: What it printed, both streams together.
    """

    exit_code: int
    anonymous_bytes: int
    elapsed_s: float
    output: str

    @property
    def anonymous_mib(self) -> float:
        """The same in MiB."""
        return self.anonymous_bytes / (1 << 20)


def measure(arguments: Sequence[str], output: Path) -> Measured:
    """Runs Python with arguments as a process of its own, and looks at its memory every 2 ms.

    Args:
        arguments: Those of the interpreter: ``("-m", "seglog", ...)`` and so on.
        output: Where to keep what it prints; a pipe that fills would stop it.
    """
    begun = time.monotonic()
    most = 0
    with output.open("wb") as stream:
        words = [sys.executable, *arguments]
        with child(words, cwd=_ROOT, stdout=stream, stderr=subprocess.STDOUT) as process:
            status = Path(f"/proc/{process.pid}/status")
            while process.poll() is None:
                most = max(most, _anonymous_bytes(status))
                time.sleep(_EVERY_S)
    elapsed_s = time.monotonic() - begun
    return Measured(process.returncode, most, elapsed_s, output.read_text("utf-8", "replace"))


def seglog(*arguments: str) -> tuple[str, ...]:
    """Returns what makes Python run a command of ours."""
    return ("-c", "from seglog.cli.main import main; main()", *arguments)


def _anonymous_bytes(status: Path) -> int:
    try:
        lines = status.read_text().splitlines()
    except (FileNotFoundError, ProcessLookupError):  # it has just ended
        return 0
    return next((int(line.split()[1]) << 10 for line in lines if line.startswith(_FIELD)), 0)


OPEN: Final = "from seglog import MessageStore; MessageStore.open({!r}, create=False, read_only={}).close()"


def whole_store_commands(store: Path, folder: Path) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yields what looks at all of a store, by name and as arguments of :func:`measure`; run them in order.

    Args:
        store: The store, which is repaired, put right again and written to.
        folder: Where to write what is exported.
    """
    path = str(store)
    yield "check", seglog("check", path)
    yield "open to read", ("-c", OPEN.format(path, True))
    yield "export", seglog("export", path, "-o", str(folder / "exported.jsonl"), "--force")
    (folder / "exported").unlink(missing_ok=True)
    yield "repair, dry run", seglog("repair", path)
    yield "repair", seglog("repair", path, "--apply", "--yes")
    yield "undo", seglog("undo", path)
    yield "open to write", ("-c", OPEN.format(path, False))
    yield "open again", ("-c", OPEN.format(path, False))
    yield "put", seglog("put", path, "Small", "last", "--key", "K1")
    yield "erase", seglog("erase", path, "K1", "--apply", "--yes")
