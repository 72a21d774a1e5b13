"""Checks the folders of a store: owners and rights of names, and names that do not belong there."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from seglog.doctor.parts.tolerant_files import CheckedFiles
from seglog.storage.directory import RocksPart, is_rocksdb_file
from seglog.storage.files import LINK, PACK_NAME, UNDO_FOLDER, kind_of, wanted_kind
from seglog.storage.findings import Finding
from seglog.storage.format import names
from seglog.storage.format.queue import COMPACTION, COMPACTION_LOG, COMPACTION_QUEUE, POSITION_FILE
from seglog.storage.segments import STAGED_SUFFIX

_FILES: Final = re.compile(
    r"checkpoint|abort|lock|broker\.conf|seglog\.lock|timerwheel(\.\d+)?|epochFileCheckpoint|brokerIdentity"
    r"|(abort|checkpoint|timerwheel|epochFileCheckpoint|brokerIdentity)\.(bak|tmp)"
)
_SEGMENT_FOLDERS: Final = (names.COMMIT_LOG, "timerlog", names.INDEX)
_QUEUE_FOLDERS: Final = (names.CONSUME_QUEUE, names.BATCH_CONSUME_QUEUE, names.CONSUME_QUEUE_EXT)
_FOLDERS: Final = frozenset(
    {*_SEGMENT_FOLDERS, *_QUEUE_FOLDERS, names.CONFIG, COMPACTION, names.OURS, "rocksdbstore"}
)
_CONFIG_FILE: Final = re.compile(
    r"\w+\.json(\.bak)?|timercheck|(timer|transaction)[mM]etrics(\.bak)?|tools\.\w+"
)
_QUEUE_ID: Final = re.compile(r"0|[1-9][0-9]{0,9}")
_RIGHTS: Final = {False: stat.S_IRUSR | stat.S_IWUSR, True: stat.S_IRWXU}


@dataclass(slots=True)
class _Group:
    """Names of one part of the store that share a finding."""

    first: str
    expected: str
    found: str
    count: int = 1

    def finding(self, code: str) -> Finding:
        more = f", and {self.count - 1} more in this folder" if self.count > 1 else ""
        return Finding(code, self.first, expected=self.expected, found=self.found + more)


@dataclass(slots=True)
class _Findings:
    groups: dict[tuple[str, str, str, str], _Group] = field(default_factory=dict)

    def add(self, code: str, name: str, expected: str, found: str) -> None:
        part = name.rpartition("/")[0] if code == "stray" else name.partition("/")[0]
        group = self.groups.setdefault((code, part, expected, found), _Group(name, expected, found, 0))
        group.count += 1

    def list(self) -> list[Finding]:
        return [group.finding(code) for (code, *_rest), group in self.groups.items()]


def tree_findings(
    files: CheckedFiles, root: Path, rocksdb: Iterable[RocksPart], *, is_live: bool
) -> list[Finding]:
    """Returns the findings on names, owners and rights; the parts that are in RocksDB are passed over.

    With an open writer (``is_live``) a staged file is one that the writer is about to rename. Files in the
    wrong place that keep RocketMQ from starting are reported by the check that reads their folder; ``files``
    remembers names that are neither a file nor a folder.
    """
    found = _Findings()
    owner = files.status(root).st_uid
    of_log = files.log_folders
    foreign = {part.name for part in rocksdb}
    for name, status in _walk(files, root, root, foreign):
        parts = name.split("/")
        is_dir = stat.S_ISDIR(status.st_mode)
        kind = kind_of(status.st_mode)
        if name in foreign or (parts[0] in foreign and not is_dir and is_rocksdb_file(parts[-1])):
            continue
        if status.st_uid != owner:
            found.add("file-owner", name, f"user {owner}", f"user {status.st_uid}")
        rights = _RIGHTS[is_dir]
        if kind != LINK and status.st_mode & rights != rights:
            found.add("file-permission", name, f"{rights:#o} for its owner", stat.filemode(status.st_mode))
        if expected := wanted_kind(parts[:-1], parts[-1], kind):
            files.meet_odd(root / name, kind, expected)
        elif (wrong := _judge(_in_log(parts, of_log), is_dir=is_dir)) and not (
            is_live and wrong == "leftover"
        ):
            found.add(wrong, name, "", "a folder" if is_dir else "a file")
    return found.list()


def _in_log(parts: list[str], folders: Sequence[str]) -> list[str]:
    """Returns the names that lead to a file as if all files of the log were in ``commitlog``."""
    name = "/".join(parts)
    for folder in folders:
        if name == folder or folder.startswith(f"{name}/"):
            return [names.COMMIT_LOG]
        if name.startswith(f"{folder}/"):
            return [names.COMMIT_LOG, *parts[folder.count("/") + 1 :]]
    return parts


def _walk(
    files: CheckedFiles, root: Path, folder: Path, foreign: Container[str]
) -> Iterator[tuple[str, os.stat_result]]:
    """Yields every name below a folder, relative to the store, parents first.

    Of a folder in ``foreign`` only that is yielded which RocketMQ has beside it: queue files.
    """
    try:
        entries = files.scan(folder)
    except OSError:  # the check that reads the folder reports it as unreadable
        return
    for own_name, status in entries:
        path = folder / own_name
        name = path.relative_to(root).as_posix()
        yield name, status
        if stat.S_ISDIR(status.st_mode) and (name not in foreign or name in _QUEUE_FOLDERS):
            yield from _walk(files, root, path, foreign)


def _judge(parts: list[str], *, is_dir: bool) -> str:
    """Returns the code of the finding on a name, empty if the name belongs there."""
    top, depth, name = parts[0], len(parts), parts[-1]
    if tuple(parts[:-1]) == UNDO_FOLDER:
        return "" if is_dir and PACK_NAME.fullmatch(name) else "stray"
    if depth == 1:
        if is_dir:
            return "" if name in _FOLDERS else ("file-kind" if _FILES.fullmatch(name) else "stray")
        if _FILES.fullmatch(name):
            return ""
        return "file-kind" if name in _FOLDERS else "stray"
    judge = _JUDGES.get(top)
    return judge(depth, name, is_dir) if judge is not None else ""


def _judge_segments(depth: int, name: str, is_dir: bool) -> str:
    return "stray" if is_dir or depth > 2 else ""


def _judge_queues(depth: int, name: str, is_dir: bool) -> str:
    if depth in (2, 3) and not is_dir:
        return "leftover" if name.endswith(STAGED_SUFFIX) else "stray"
    if depth == 3 and not _QUEUE_ID.fullmatch(name):
        return "stray"
    return "stray" if depth > 3 and (is_dir or depth > 4) else ""


def _judge_config(depth: int, name: str, is_dir: bool) -> str:
    if depth == 2 and not is_dir:
        if name.endswith(".tmp"):
            return "leftover"
        return "" if _CONFIG_FILE.fullmatch(name) else "stray"
    return "stray" if depth == 2 else ""


def _judge_compaction(depth: int, name: str, is_dir: bool) -> str:
    if depth > 2:
        return ""  # reported with the messages of their topics
    if is_dir:
        return "" if name in (COMPACTION_LOG, COMPACTION_QUEUE) else "stray"
    return "" if name.removesuffix(".bak").removesuffix(".tmp") == POSITION_FILE else "stray"


_JUDGES: Final[dict[str, Callable[[int, str, bool], str]]] = {
    **dict.fromkeys(_SEGMENT_FOLDERS, _judge_segments),
    **dict.fromkeys(_QUEUE_FOLDERS, _judge_queues),
    names.CONFIG: _judge_config,
    COMPACTION: _judge_compaction,
}
