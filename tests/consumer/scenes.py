"""Scenes that each need a process of their own: children of one that has imported what they use.

An interpreter and its imports cost half a second, a fork next to nothing. Each scene ends as an interpreter
does, with all that runs then.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.support.machine.patience import patience_s
from tests.support.scale import chance, is_gate

ROOT: Final = Path(__file__).parents[2]
_DRIVER: Final = """
import json as _json, os as _os, sys as _sys

for _number, _words in enumerate(_json.loads(_sys.argv[1])):
    _pid = _os.fork()
    if not _pid:
        for _descriptor, _name in ((1, "out"), (2, "err")):
            _file = _os.open(f"{_sys.argv[2]}/{_number}.{_name}", _os.O_WRONLY | _os.O_CREAT | _os.O_APPEND)
            _os.dup2(_file, _descriptor)
            _os.close(_file)
        scene(*_words)
        break
    _, _status = _os.waitpid(_pid, 0)
    print(_os.waitstatus_to_exitcode(_status), flush=True)
"""


@dataclass(frozen=True)
class Ended:
    """What a scene came to.

    Attributes:
        code: Its exit code, negative for a signal.
        out: What it has written.
        said: What it has written as an error.
    """

    code: int
    out: str
    said: str


def variants(choices: Sequence[str], *names: object) -> Sequence[str]:
    """Returns all choices, but the gate's one of each commit."""
    return [chance(*names).choice(choices)] if is_gate() else choices


def play(script: str, rows: Sequence[Sequence[object]], folder: Path, *options: str) -> list[Ended]:
    """Returns what ``scene(*words)`` of a script came to with each row of words, one process each.

    Args:
        script: Defines ``scene``; it must not start a thread before that is called.
        rows: The words of each scene.
        folder: Where what they write is kept.
        options: Of the interpreter.
    """
    words = json.dumps([[str(word) for word in row] for row in rows])
    done = subprocess.run(
        [sys.executable, *options, "-c", script + _DRIVER, words, str(folder)],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        timeout=patience_s(30) * len(rows),
        cwd=ROOT,
    )
    codes = [int(line) for line in done.stdout.split()]
    assert len(codes) == len(rows)
    return [
        Ended(code, (folder / f"{number}.out").read_text(), (folder / f"{number}.err").read_text())
        for number, code in enumerate(codes)
    ]
