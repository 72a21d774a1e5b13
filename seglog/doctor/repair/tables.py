"""Repairs impossible values in config tables if the store shows the right value.

The files are valid JSON, and no checksum covers them. Two things prove a value. Either a name or word that
RocketMQ defines has one wrong byte, and changing this byte, and no other change, leaves no finding. Or the
file's entry is impossible, and the entry of the backup is possible. All other values only the operator can
judge: they are kept, and a check names them.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from seglog.doctor.parts.offset_check import topic_findings
from seglog.doctor.plans.actions import Action
from seglog.doctor.tables.config_tables import TABLES, Object, read_table
from seglog.errors import CorruptError
from seglog.storage.directory import TOPICS_FILE, list_queues
from seglog.storage.files import Files
from seglog.storage.format.config import decode_config, encode_config
from seglog.storage.format.names import BATCH_CONSUME_QUEUE, CONFIG, CONSUME_QUEUE
from seglog.storage.format.queue import BATCH_UNIT, CQ_UNIT

_BACKUP: Final = ".bak"
_TOKEN: Final = re.compile(rb'"([^"\\]*)"')
_TOPIC_WORDS: Final = (b"attributes", b"queue.type", b"BatchCQ", b"SimpleCQ")
"""Words whose correctness follows from the folder of a queue."""

_Folders = Mapping[str, list[tuple[str, int, str]]]


def mend_tables(files: Files, root: Path) -> Iterator[Action]:
    """Repairs impossible values in files that are valid JSON; yields the actions."""
    folders = _folders(files, root)
    for name in TABLES:
        path = root / CONFIG / name
        data = files.read_file(path) if files.exists(path) else b""
        value = _decoded(data)
        if value is None or not _is_wrong(name, value, folders):
            continue
        made, proof = _one_byte(name, data, folders), "one byte of a name"
        if made is None:
            backup = path.with_name(name + _BACKUP)
            old = _decoded(files.read_file(backup)) if files.exists(backup) else None
            made, proof = _with_entries(name, value, old, folders), f"entries of {backup.name}"
        if made is not None:
            files.write_file(path, made)
            yield Action("config", path.relative_to(root).as_posix(), size_bytes=len(made), detail=proof)


def _folders(files: Files, root: Path) -> _Folders:
    """Returns topic, queue id and folder of every queue that has files, by topic."""
    found: defaultdict[str, list[tuple[str, int, str]]] = defaultdict(list)
    for folder, layout in ((CONSUME_QUEUE, CQ_UNIT), (BATCH_CONSUME_QUEUE, BATCH_UNIT)):
        for queue in list_queues(files, root, folder, layout):
            if queue.sizes:
                found[queue.topic].append((queue.topic, queue.queue_id, folder))
    return found


def _decoded(data: bytes) -> Object | None:
    try:
        value = decode_config(data) if data.strip() else None
    except CorruptError:
        return None
    return value if isinstance(value, Mapping) else None


def _is_wrong(name: str, value: Object, folders: _Folders) -> bool:
    """Returns whether a check finds an impossible value in a table."""
    tables = read_table(name, value)
    topics = tables.topics or {}
    return bool(tables.findings) or any(
        topic_findings(tables, {}, folders[topic]) for topic in topics if topic in folders
    )


def _one_byte(name: str, data: bytes, folders: _Folders) -> bytes | None:
    """Returns a file in which one changed byte turns a wrong name into one of RocketMQ's, else None."""
    words = (TABLES[name].encode(), *(_TOPIC_WORDS if name == TOPICS_FILE else ()))
    made = set()
    for token in _TOKEN.finditer(data):
        found = token[1]
        for word in words:
            is_near = len(found) == len(word) and sum(a != b for a, b in zip(found, word, strict=True)) == 1
            if is_near:
                changed = data[: token.start(1)] + word + data[token.end(1) :]
                value = _decoded(changed)
                if value is not None and not _is_wrong(name, value, folders):
                    made.add(changed)
    return made.pop() if len(made) == 1 else None


def _with_entries(name: str, value: Object, backup: Object | None, folders: _Folders) -> bytes | None:
    """Returns a file in which impossible entries are replaced by the backup's; None if any are left."""
    wanted = TABLES[name]
    table, old = value.get(wanted), None if backup is None else backup.get(wanted)
    if not isinstance(old, Mapping):
        return None
    if not isinstance(table, Mapping):
        table = old
    entries = {
        key: old[key] if key in old and _is_wrong(name, {wanted: {key: entry}}, folders) else entry
        for key, entry in table.items()
    }
    made = {**value, wanted: entries}
    return None if _is_wrong(name, made, folders) else encode_config(made).encode()
