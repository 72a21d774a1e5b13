"""Config files: rebuilt from their backup, or the backup from the file.

A file that its backup cannot restore is moved away: RocketMQ deletes it if there is no backup, and does not
start with a damaged one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from seglog.doctor.plans.actions import Action, move_away
from seglog.doctor.tables.config_tables import TABLES
from seglog.errors import CorruptError
from seglog.storage.files import Files
from seglog.storage.format.config import decode_config
from seglog.storage.format.names import CONFIG
from seglog.storage.format.queue import COMPACTION, POSITION_FILE
from seglog.storage.small_files import is_config_table

_BACKUP = ".bak"


def mend_config(files: Files, root: Path) -> Iterator[Action]:
    """Repairs the JSON files under ``config/`` and the JSON file of compaction; yields the actions."""
    for main in _tables(files, root):
        backup = main.with_name(main.name + _BACKUP)
        has_main, has_backup = files.exists(main), _is_there(files, backup)
        good_main, good_backup = (
            has and _is_good(files, path) for has, path in ((has_main, main), (has_backup, backup))
        )
        if has_main and not good_main and good_backup:
            yield _copy(files, root, backup, main)
        elif has_backup and not good_backup and good_main:
            yield _copy(files, root, main, backup)
        else:
            for path, is_bad in (
                (main, has_main and not good_main),
                (backup, has_backup and not good_backup),
            ):
                if is_bad:
                    moved = move_away(files, root, path.relative_to(root).as_posix())
                    detail = f"no good copy is there; moved {moved.detail}, RocketMQ starts with an empty one"
                    yield Action("config", moved.file, size_bytes=moved.size_bytes, detail=detail)


def _tables(files: Files, root: Path) -> list[Path]:
    """Returns the JSON files, including files of which only the backup exists."""
    listed = [entry.name for entry in files.list_dir(root / CONFIG) if not entry.is_dir]
    names = {name.removesuffix(_BACKUP) for name in listed if is_config_table(name)}
    tables = [root / CONFIG / name for name in sorted(names)]
    return [*tables, root / COMPACTION / POSITION_FILE]


def _is_there(files: Files, backup: Path) -> bool:
    """Returns whether a backup holds data; RocketMQ creates empty backups for the positions of compaction."""
    is_of_positions = backup.name == f"{POSITION_FILE}{_BACKUP}"
    return files.exists(backup) and not (is_of_positions and not files.read_file(backup))


def _is_good(files: Files, path: Path) -> bool:
    """Returns whether a file holds JSON, and a known one its table: RocketMQ takes no other shape."""
    try:
        value = decode_config(files.read_file(path))
    except CorruptError:
        return False
    table = TABLES.get(path.name.removesuffix(_BACKUP))
    if table is None:
        return True
    return isinstance(value, Mapping) and isinstance(value.get(table, {}), Mapping)


def _copy(files: Files, root: Path, source: Path, target: Path) -> Action:
    data = files.read_file(source)
    files.write_file(target, data)
    return Action(
        "config", target.relative_to(root).as_posix(), size_bytes=len(data), detail=f"from {source.name}"
    )
