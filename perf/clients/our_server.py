"""``seglog serve`` in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from perf.clients.running import RunningBroker
from perf.figures.sample import SanityError

_ROOT: Final = Path(__file__).resolve().parents[2]


@contextmanager
def our_server(folder: Path) -> Iterator[RunningBroker]:
    """Serves a new store until the block ends.

    Args:
        folder: The store is made in it.

    Raises:
        SanityError: It does not start.
    """
    with (folder / "serve.err").open("w") as errors:
        process = subprocess.Popen(
            [Path(sys.executable).with_name("seglog"), "serve", str(folder / "store"), "--port", "0"],
            cwd=_ROOT,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            encoding="utf-8",
            env=os.environ | {"PYTHONUNBUFFERED": "1"},
        )
    try:
        assert process.stdout is not None
        said = process.stdout.readline()
        if not said.startswith("ready at "):
            raise SanityError(f"seglog serve said {said!r}: {(folder / 'serve.err').read_text()[-2000:]}")
        address = said.removeprefix("ready at ").split(": ")[0]
        yield RunningBroker(address, address, process.pid)
    finally:
        process.kill()  # its store goes with its folder
        process.communicate()
