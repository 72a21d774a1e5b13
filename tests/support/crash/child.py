"""Another process that has a store open and does what it is asked, until it is closed or killed.

Run as a module it is that process: one JSON command a line on stdin, one JSON answer a line on stdout.
"""

from __future__ import annotations

import json
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Self

from seglog.errors import SeglogError
from seglog.storage.store import MessageStore
from seglog.storage.writes.flush import Durability
from tests.support.machine.children import child
from tests.support.machine.patience import wait_for_end

_ROOT = Path(__file__).resolve().parents[3]


class Child:
    """The other process, as seen from here."""

    def __init__(self, store: Path, **options: Any) -> None:
        command = [sys.executable, "-m", "tests.support.crash.child", str(store), json.dumps(options)]
        pipes: Any = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True, "bufsize": 1}
        self._started = ExitStack()
        self.process = self._started.enter_context(child(command, cwd=_ROOT, **pipes))
        self.opened = self._answer()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exit: object) -> None:
        self.kill()

    def ask(self, do: str, **arguments: Any) -> dict[str, Any]:
        """Sends one command and returns its answer."""
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps({"do": do, **arguments}) + "\n")
        self.process.stdin.flush()
        return self._answer()

    def kill(self) -> None:
        """Ends the process with SIGKILL, if it has not ended."""
        self._started.close()

    def _answer(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, f"the child ended with {wait_for_end(self.process)}"
        answer: dict[str, Any] = json.loads(line)
        return answer


def _put(store: MessageStore, *, count: int = 1, durability: str = "async", **message: Any) -> dict[str, Any]:
    body = message.pop("body", "body").encode()
    offsets = [
        store.put(body=body, durability=Durability(durability), **message).queue_offset for _ in range(count)
    ]
    return {"first": offsets[0], "last": offsets[-1]}


def _serve(store: MessageStore) -> None:
    for line in sys.stdin:
        command = json.loads(line)
        match command.pop("do"):
            case "put":
                answer = _put(store, **command)
            case "flush":
                store.flush()
                answer = {}
            case "close":
                store.close()
                answer = {}
            case other:
                raise ValueError(other)
        print(json.dumps(answer), flush=True)


def _main() -> None:
    path, options = sys.argv[1], json.loads(sys.argv[2])
    try:
        store = MessageStore.open(path, **options)
    except SeglogError as error:
        print(json.dumps({"error": type(error).__name__, "text": str(error)}), flush=True)
        return
    print(json.dumps({"mode": store.recovery.mode}), flush=True)
    _serve(store)


if __name__ == "__main__":
    _main()
