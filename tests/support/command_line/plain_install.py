"""A process that sees what ``pip install seglog`` brings, without extras: no PySpark, no pyarrow, no pandas.

Everything comes from the environment that runs the tests: a folder of links holds seglog's own dependencies
and theirs, and a Python that was started without site packages looks there alone.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib import metadata
from pathlib import Path
from typing import Final

import seglog

_NAME: Final = re.compile(r"[A-Za-z0-9._-]+")
_START: Final = "import sys; sys.path[:0] = sys.argv.pop(1).split(':'); "


class PlainInstall:
    """The folder of links, and an empty folder for a PATH on which no Java is.

    Args:
        folder: An empty folder for both.
    """

    def __init__(self, folder: Path) -> None:
        self._packages, self._path = folder / "packages", folder / "bin"
        self._packages.mkdir()
        self._path.mkdir()
        for name in _needed("seglog"):
            distribution = metadata.distribution(name)
            tops = {Path(file).parts[0] for file in distribution.files or () if ".." not in Path(file).parts}
            for top in tops - {"__pycache__"}:
                if name != "seglog" or top.endswith(".dist-info"):
                    (self._packages / top).symlink_to(Path(str(distribution.locate_file(top))))

    def run(self, code: str, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
        """Runs Python code, with ``sys.argv[1:]`` as given, without a Java."""
        places = f"{Path(seglog.__path__[0]).parent}:{self._packages}"
        kept = {name: os.environ[name] for name in ("HOME", "SEGLOG_KERNEL", "TMPDIR") if name in os.environ}
        return subprocess.run(
            [sys.executable, "-S", "-c", _START + code, places, *map(str, arguments)],
            env={**kept, "PATH": str(self._path), "PYTHONDONTWRITEBYTECODE": "1"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )

    def seglog(self, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
        """Runs a command of the command line."""
        return self.run("from seglog.cli.main import main; main()", *arguments)


def _needed(name: str) -> set[str]:
    """Returns a distribution and all that it needs where none of its extras was asked for."""
    found: set[str] = set()
    todo = [name]
    while todo:
        one = todo.pop()
        if one in found:
            continue
        found.add(one)
        for line in metadata.requires(one) or ():
            match = _NAME.match(line)
            # All that stands after the semicolon, an extra or another system, is not part of this install.
            if match is not None and ";" not in line:
                todo.append(match[0])
    return found
