"""One hostile store: three commands on it in a process of its own, and what must hold afterwards.

The process is forked from this one, which has everything loaded; so a command takes what it does itself, and
no start. What it may take of time and memory is set by limits of the system.
"""

from __future__ import annotations

import io
import json
import os
import random
import re
import resource
import select
import shutil
import signal
import stat
import time
import zlib
from collections import deque
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Final

from seglog.cli.main import commands
from seglog.errors import Ending, error_classes
from tests.support.hostile.bases import BASES, EXPORTED, Base, base
from tests.support.hostile.commands import ALL, READING, Subject, command_paths, words_of
from tests.support.hostile.kinds import KINDS, damage
from tests.support.hostile.watching import Watch

CPU_S: Final = 10.0
WALL_S: Final = 120.0
DATA_BYTES: Final = 1536 << 20
_LOOKED_AT_BYTES: Final = 1 << 20
"""Of a file outside; a damage by way of a link can make one of terabytes, all hole."""
EXIT_CODES: Final = frozenset(
    {Ending.CLEAN, Ending.FINDINGS, Ending.USAGE, Ending.LOSS, Ending.LEFT}
    | {kind.exit_code for kind in error_classes()}
)
_ACTS: Final = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


@dataclass(frozen=True, slots=True)
class Trial:
    """What came of one store.

    Attributes:
        seed: Makes it again.
        kinds: What was changed, by kind.
        done: What was done to each.
        commands: What it was given to.
        exits: How each of them ended.
        broken: Which promises were broken; empty if none was.
        cpu_s: CPU time of the slowest.
        peak_bytes: The most memory.
    """

    seed: int
    kinds: list[str]
    done: list[str]
    commands: list[str]
    exits: list[int]
    broken: list[str]
    cpu_s: float
    peak_bytes: int


@dataclass(slots=True)
class Said:
    """What commands said of themselves; fields as :class:`Trial` has them."""

    exits: list[int] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)
    cpu_s: float = 0.0
    peak_bytes: int = 0


def make_bases() -> dict[str, Base]:
    """Returns every store that trials start from."""
    warm_up()
    return {name: base(name) for name in BASES}


def warm_up() -> None:
    """Loads every command, so that no forked process has to."""
    deque(command_paths(), 0)
    for name in ("numpy", "rich.cells", "rich.console", "rich.progress", "crc32c", "importlib.metadata"):
        import_module(name)


def subject_of(start: Base, folder: Path) -> Subject:
    """Copies a store into a folder, with a place for what commands write elsewhere."""
    aside, store = folder / "aside", folder / "store"
    aside.mkdir()
    rows = start.root.parent / EXPORTED
    (aside / EXPORTED).write_bytes(rows.read_bytes() if rows.exists() else b"{}\n")
    shutil.copytree(start.root, store, symlinks=True)
    return Subject(store, aside, start.topic, start.group, start.key, start.message_id, start.half_id)


def try_store(bases: dict[str, Base], folder: Path, seed: int, kinds: list[str], names: list[str]) -> Trial:
    """Makes a hostile store, gives it to commands, and returns what came of it.

    Args:
        bases: What :func:`make_bases` made.
        folder: An empty folder, which is removed afterwards.
        seed: Decides everything that is left open.
        kinds: What is changed; all of one base.
        names: The commands, keys of ``commands.ALL``.
    """
    dice = random.Random(seed)
    folder.mkdir(parents=True)
    outside = folder / "outside"
    (outside / "folder").mkdir(parents=True)
    (outside / "canary").write_bytes(b"mine, all of it\n" * 300)
    (outside / "folder" / "canary").write_bytes(b"mine as well")
    os.mkfifo(outside / "pipe")
    subject = subject_of(bases[KINDS[kinds[0]].base], folder)
    store = subject.store
    done = [damage(dice, KINDS[kind], store, outside) for kind in kinds]
    before = dict(_surroundings(folder))
    with Watch(outside, outside / "folder") as watch:
        said = run_forked(subject, names)
        escapes = watch.seen()
    said.broken += [f"outside: {text.replace(str(folder), '')}" for text in escapes]
    after = dict(_surroundings(folder))
    for name in sorted(before.keys() | after.keys()):
        if before.get(name) != after.get(name):
            said.broken.append(f"changed outside: {name}: {before.get(name)} -> {after.get(name)}")
    shutil.rmtree(folder)
    return Trial(seed, kinds, done, names, said.exits, said.broken, round(said.cpu_s, 2), said.peak_bytes)


def _surroundings(folder: Path) -> Iterator[tuple[str, object]]:
    """Yields everything beside the store that no command is asked to write, with all that is known of it."""
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if name.partition("/")[0] in ("store", "aside"):
            continue
        status = path.lstat()
        content = b""
        if stat.S_ISREG(status.st_mode):
            with path.open("rb") as file:
                content = file.read(_LOOKED_AT_BYTES)
        known = (status.st_mode, status.st_uid, status.st_mtime_ns, status.st_size, status.st_blocks)
        yield name, (*known, zlib.crc32(content))


def run_on_sound_store(folder: Path) -> dict[str, Said]:
    """Runs every command alone on a sound store of its own; returns what each said."""
    warm_up()
    sound = base("everyday")
    said = {}
    for number, name in enumerate(ALL):
        place = folder / str(number)
        place.mkdir()
        said[name] = run_forked(subject_of(sound, place), [name])
    return said


def run_forked(subject: Subject, names: list[str]) -> Said:
    """Runs commands in a forked process, and returns what they said; one that hangs is killed."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        _child(subject, names, writing)
    os.close(writing)
    said = Said()
    text = b""
    until = time.monotonic() + WALL_S
    while True:
        ready, _, _ = select.select([reading], [], [], max(0.0, until - time.monotonic()))
        if not ready:
            os.kill(child, signal.SIGKILL)
            said.broken.append(f"hangs: {_next(text, names)}")
            break
        piece = os.read(reading, 1 << 16)
        if not piece:
            break
        text += piece
    os.close(reading)
    _pid, status = os.waitpid(child, 0)
    for line in text.splitlines():
        fields = json.loads(line)
        said.exits.append(fields["exit"])
        said.broken += fields["broken"]
        said.cpu_s = max(said.cpu_s, fields["cpu"])
        said.peak_bytes = max(said.peak_bytes, fields["peak"])
    if status and not said.broken:
        said.broken.append(f"died of {status}: {_next(text, names)}")
    return said


def _next(text: bytes, names: list[str]) -> str:
    return names[min(text.count(b"\n"), len(names) - 1)]


def _child(subject: Subject, names: list[str], writing: int) -> None:
    """Runs commands one after the other, and reports each; never returns."""
    os.environ["XDG_STATE_HOME"] = str(subject.aside / "state")
    os.environ["HOME"] = str(subject.aside)
    os.chdir(subject.aside)
    resource.setrlimit(resource.RLIMIT_DATA, (DATA_BYTES, DATA_BYTES))
    resource.setrlimit(resource.RLIMIT_CPU, (60, 60))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    try:
        for name in names:
            os.write(writing, json.dumps(_run(subject, name)).encode() + b"\n")
    finally:
        os._exit(0)


def _run(subject: Subject, name: str) -> dict[str, object]:
    before = list(_shape(subject.store, name)) if name in READING else []
    begun = time.process_time()
    out, err = _Text(), _Text()
    code: int | str | None = 0
    with redirect_stdout(out), redirect_stderr(err):
        try:
            commands(words_of(name, subject), prog_name="seglog")
        except SystemExit as end:
            code = end.code
    cpu_s = time.process_time() - begun
    text = out.text() + err.text()
    broken = []
    if code not in EXIT_CODES:
        broken.append(f"{name}: exit {code}: {text[-1500:]}")
    elif code == 2:
        broken.append(f"{name}: wrong usage: {text[-300:]}")
    if "Traceback" in text:
        broken.append(f"{name}: traceback: {text[-1500:]}")
    if found := _ACTS.search(text):
        broken.append(
            f"{name}: acts upon a terminal: {text[max(0, found.start() - 80) : found.end() + 20]!r}"
        )
    if cpu_s > CPU_S:
        broken.append(f"{name}: {cpu_s:.1f} s of CPU")
    if name in READING and before != (after := list(_shape(subject.store, name))):
        broken.append(f"{name}: changed the store: {set(before) ^ set(after)}")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10
    return {"exit": code, "broken": broken, "cpu": cpu_s, "peak": peak}


class _Text(io.TextIOWrapper):
    """Takes text and bytes as a real stream does."""

    def __init__(self) -> None:
        super().__init__(io.BytesIO(), encoding="utf-8", errors="backslashreplace", write_through=True)

    def text(self) -> str:
        self.flush()
        buffer = self.buffer
        return buffer.getvalue().decode("utf-8", "replace") if isinstance(buffer, io.BytesIO) else ""


def _shape(store: Path, command: str) -> Iterator[tuple[str, int, int, int]]:
    """Yields names, kinds, lengths and times of all that is in a store, without opening any of it.

    A backup takes the lock, and makes the lock file where there is none: that file is left out for it.
    """
    left_out = os.path.join(store, "lock") if command == "backup" else None  # noqa: PTH118 - as below
    for folder, folders, files in os.walk(store):
        for name in (*folders, *files):
            path = os.path.join(folder, name)  # noqa: PTH118 - names that are no text
            if path == left_out:
                continue
            status = os.lstat(path)
            size = 0 if stat.S_ISDIR(status.st_mode) else status.st_size
            yield path, status.st_mode, size, status.st_mtime_ns
