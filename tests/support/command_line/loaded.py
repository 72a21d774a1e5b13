"""A process that has loaded all commands, and forks itself for each one that a test runs.

A command in it is a process like any other, with files, a working directory, an environment, signals and an
exit code of its own. What is missing are the start of Python and its taking apart of all modules at the end,
which take most of the time of a short command; tests of these start Python (the fixture ``command_line``).
"""

from __future__ import annotations

import atexit
import functools
import gc
import json
import os
import selectors
import signal
import socket
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Final

from tests.support.machine.children import child
from tests.support.machine.patience import LateError, patience_s

_ROOT: Final = Path(__file__).resolve().parents[3]
_LENGTH_BYTES: Final = 4
_OFTEN: Final = (
    "click._textwrap", "crc32c", "encodings.unicode_escape", "encodings.utf_16_be", "importlib.metadata",
    "numpy.ma", "rich.cells", "rich.console", "rich.progress", "seglog.storage.store",
)  # fmt: skip
"""What commands import when they run."""
CLOSED: Final = -1
"""Instead of a file that a command is started with."""


class Running:
    """A command that runs.

    Args:
        server: Where the process that forked it says how it ended.
        pid: Its process.
    """

    def __init__(self, server: socket.socket, pid: int) -> None:
        self._server = server
        self.pid = pid
        self._code: int | None = None

    def wait(self) -> int:
        """Returns its exit code, as ``subprocess`` has it."""
        if self._code is None:
            self._code = int.from_bytes(_read(self._server, _LENGTH_BYTES), "big", signed=True)
        return self._code

    def end(self) -> None:
        """Kills it if it was not waited for."""
        if self._code is None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)
            self.wait()


class Loaded:
    """The process that has loaded the commands."""

    def __init__(self) -> None:
        self._end, its = socket.socketpair()
        words = [sys.executable, "-c", f"from {__name__} import serve; serve()", str(its.fileno())]
        self._process = ExitStack()
        options = {"cwd": _ROOT, "stdin": subprocess.DEVNULL, "start_new_session": True}
        with its:
            self._process.enter_context(child(words, pass_fds=[its.fileno()], **options))

    @contextmanager
    def running(
        self, words: Sequence[object], files: Sequence[int], environment: Mapping[str, str] | None = None
    ) -> Iterator[Running]:
        """Runs a command, one at a time; it is killed at the end if it was not waited for.

        Args:
            words: What stands behind ``seglog``.
            files: Its standard input, output and error, or ``CLOSED``.
            environment: Its environment; None for that of this process.
        """
        closed = [number for number, file in enumerate(files) if file == CLOSED]
        asked = [[*map(str, words)], dict(environment or os.environ), str(Path.cwd()), closed]
        told = json.dumps(asked).encode()
        opened = [file for file in files if file != CLOSED]
        socket.send_fds(self._end, [len(told).to_bytes(_LENGTH_BYTES, "big")], opened)
        self._end.sendall(told)
        one = Running(self._end, int.from_bytes(_read(self._end, _LENGTH_BYTES), "big"))
        try:
            yield one
        finally:
            one.end()

    def run(
        self,
        *words: object,
        stdin: bytes | int = b"",
        stdout: int | None = None,
        stderr: int | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> subprocess.CompletedProcess[bytes]:
        """Runs a command to its end.

        Args:
            words: What stands behind ``seglog``.
            stdin: What it reads, or a file for it.
            stdout: A file for what it prints; None to return that.
            stderr: The same for its errors.
            environment: Its environment; None for that of this process.
        """
        with ExitStack() as ours, ExitStack() as its:
            if isinstance(stdin, bytes):
                stdin = _file_of(stdin, its)
            outputs = [_pipe(ours, its) if file is None else (None, file) for file in (stdout, stderr)]
            with self.running(words, [stdin, *(file for _reading, file in outputs)], environment) as one:
                its.close()
                said = _read_all([reading for reading, _file in outputs if reading is not None])
                found = [None if reading is None else said[reading] for reading, _file in outputs]
                return subprocess.CompletedProcess(["seglog", *map(str, words)], one.wait(), *found)

    def close(self) -> None:
        """Ends the process."""
        self._end.close()
        self._process.close()


@functools.cache
def loaded() -> Loaded:
    """Returns the one of this process."""
    one = Loaded()
    atexit.register(one.close)
    return one


def _read(end: socket.socket, count: int) -> bytes:
    """Returns as many bytes as are wanted.

    Raises:
        LateError: They have not come in time.
    """
    data = b""
    while len(data) < count:
        end.settimeout(patience_s(60))
        try:
            piece = end.recv(count - len(data))
        except TimeoutError:
            raise LateError("the other end says nothing") from None
        if not piece:
            raise EOFError("the other end is gone")
        data += piece
    return data


def _file_of(data: bytes, its: ExitStack) -> int:
    """Returns a file to be read from, with some bytes."""
    reading, writing = os.pipe()
    its.callback(os.close, reading)
    assert os.write(writing, data) == len(data), "a pipe has room for less"
    os.close(writing)
    return reading


def _pipe(ours: ExitStack, its: ExitStack) -> tuple[int, int]:
    reading, writing = os.pipe()
    ours.callback(os.close, reading)
    its.callback(os.close, writing)
    return reading, writing


def _read_all(files: Sequence[int]) -> dict[int, bytes]:
    """Returns all that comes from files, read by turns."""
    found = dict.fromkeys(files, b"")
    with selectors.DefaultSelector() as selector:
        for file in files:
            selector.register(file, selectors.EVENT_READ)
        while selector.get_map():
            for key, _events in selector.select():
                piece = os.read(key.fd, 1 << 16)
                found[key.fd] += piece
                if not piece:
                    selector.unregister(key.fd)
    return found


def serve() -> None:
    """Runs commands in forked processes until the other end is gone; the main function of such a process."""
    from collections import deque
    from importlib import import_module

    from seglog.cli.main import main
    from tests.support.hostile.commands import command_paths

    deque(command_paths(), 0)  # imports each
    for name in _OFTEN:
        import_module(name)
    gc.freeze()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if _become_a_command(socket.socket(fileno=int(sys.argv[1]))):
        code: object = 0
        try:
            main()
        except SystemExit as end:
            code = end.code or 0
        except BaseException:  # noqa: BLE001 - as Python does
            traceback.print_exc()
            code = 1
        _end(code)


def _end(code: object) -> None:
    """Ends this process as Python does, but does not take modules apart."""
    assert isinstance(code, int), code
    threading._shutdown()  # type: ignore[attr-defined]  # waits for threads
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.flush()
    os._exit(code)


def _become_a_command(end: socket.socket) -> bool:
    """Returns True in a process that is to run a command, and False in this one, at the end."""
    while True:
        end.settimeout(None)  # until the test that comes next has a command, or this run is over
        head, files, _flags, _address = socket.recv_fds(end, _LENGTH_BYTES, 3)
        if not head:
            return False
        words, environment, folder, closed = json.loads(_read(end, int.from_bytes(head, "big")))
        pid = os.fork()
        if pid == 0:
            end.close()
            break
        for file in files:
            os.close(file)
        end.sendall(pid.to_bytes(_LENGTH_BYTES, "big"))
        _pid, status = os.waitpid(pid, 0)
        end.sendall(os.waitstatus_to_exitcode(status).to_bytes(_LENGTH_BYTES, "big", signed=True))
    for number, file in zip((number for number in range(3) if number not in closed), files, strict=True):
        os.dup2(file, number)
        os.close(file)
    os.environ.clear()
    os.environ.update(environment)
    time.tzset()
    os.chdir(folder)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.argv[:] = ["seglog", *words]
    # As Python opens them when it starts.
    encoding, errors = sys.stdout.encoding, sys.stdout.errors
    sys.stdin = open(0, encoding=encoding, errors=errors, closefd=False)  # noqa: SIM115
    sys.stdout = open(1, "w", encoding=encoding, errors=errors, closefd=False)  # noqa: SIM115
    sys.stderr = open(  # noqa: SIM115
        2, "w", buffering=1, encoding=encoding, errors="backslashreplace", closefd=False
    )
    for number in closed:
        os.close(number)
        setattr(sys, ("stdin", "stdout", "stderr")[number], None)
    return True
