"""``seglog config``: reads the config files that a broker keeps beside its messages.

They are JSON in fastjson's dialect, except the timer's checkpoint. If a file cannot be read, its ``.bak`` is
read instead, as a broker does, and the output states so.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Final

import click

from seglog.cli.read.reading import check_store, say_not_read
from seglog.cli.ui import options, pager, render
from seglog.cli.ui.lazy_group import CommandGroup
from seglog.errors import ConfigError, CorruptError, NotFoundError
from seglog.storage.directory import RocksTable
from seglog.storage.format.config import ConfigValue, decode_config
from seglog.storage.format.names import CONFIG
from seglog.storage.format.queue import COMPACTION, POSITION_FILE, decode_positions
from seglog.storage.format.timer import TIMER_CHECKPOINT, decode_timer_checkpoint

TIMER_FILE: Final = "timercheck"
_BACKUP: Final = ".bak"


@dataclass(frozen=True, slots=True)
class Loaded:
    """The contents of a config file.

    Attributes:
        file: The file that was read, relative to the store.
        is_backup: Whether it is the backup, because the file itself is missing or damaged.
        damage: What is wrong with the file itself, empty if nothing.
        value: Its value; a mapping of field names for the timer's checkpoint.
    """

    file: str
    is_backup: bool
    damage: str
    value: ConfigValue


@click.group(cls=CommandGroup)
def command() -> None:
    """Show the config files of a broker."""


@command.command
@options.store
@click.argument("name", required=False)
@options.as_json
@pager.paged()
def show(*, path: Path, name: str | None, as_json: bool) -> None:
    """Show the config files of STORE, or what is in the one called NAME.

    NAME is a file such as `topics.json`, with or without its ending. Ends with 1 if a file is damaged and
    its backup was taken.
    """
    check_store(path)
    known = dict(config_files(path))
    if name is None:
        is_whole = _show_all(path, known, as_json=as_json)
    else:
        file = known.get(name) or known.get(f"{name}.json")
        if file is None:
            raise NotFoundError(
                f"the store has no config file {name}", help="`seglog inspect config STORE` lists them"
            )
        loaded = load_config(path, file)
        is_whole = not loaded.is_backup
        _show_one(loaded, as_json=as_json)
    say_not_read(path, *RocksTable, as_json=as_json)
    if not is_whole:
        raise click.exceptions.Exit(1)


def config_files(path: Path) -> Iterator[tuple[str, str]]:
    """Yields name and path (relative to the store) of every config file, or of a backup without its file."""
    files = options.reading(path)
    names = [entry.name for entry in files.list_dir(path / CONFIG) if not entry.is_dir]
    for name in sorted({name.removesuffix(_BACKUP) for name in names}):
        yield name, f"{CONFIG}/{name}"
    for name in names:
        if name.endswith(_BACKUP):
            yield name, f"{CONFIG}/{name}"
    if POSITION_FILE in (entry.name for entry in files.list_dir(path / COMPACTION) if not entry.is_dir):
        yield POSITION_FILE, f"{COMPACTION}/{POSITION_FILE}"


def load_config(path: Path, file: str) -> Loaded:
    """Returns the contents of a config file, or of its backup if the file cannot be read.

    Raises:
        ConfigError: Neither can be read.
    """
    files, damage = options.reading(path), "missing"
    for name in (file, file + _BACKUP):
        try:
            value = _decode(name, files.read_file(path / name))
        except FileNotFoundError:
            continue
        except CorruptError as error:
            damage = str(error).replace("buffer", name, 1) if name == file else damage
            continue
        return Loaded(name, name != file, damage if name != file else "", value)
    raise ConfigError(f"{file} can be read neither itself nor from a backup: {damage}")


def _decode(name: str, data: bytes) -> ConfigValue:
    if Path(name).name.removesuffix(_BACKUP) == TIMER_FILE:
        names = (field.name for field in TIMER_CHECKPOINT.fields)
        return dict(zip(names, astuple(decode_timer_checkpoint(data)), strict=True))
    if Path(name).name == POSITION_FILE:
        decode_positions(data)
    return decode_config(data)


def _show_all(path: Path, known: dict[str, str], *, as_json: bool) -> bool:
    """Lists the files; returns whether all can be read without their backups."""
    columns = ("file", "bytes", "holds", "state")
    listing = render.Listing(columns, numbers=("bytes",), none="no config files", as_json=as_json)
    is_whole = True
    files = options.reading(path)
    sizes = {
        f"{folder}/{entry.name}": entry.size_bytes
        for folder in (CONFIG, COMPACTION)
        for entry in files.list_dir(path / folder)
    }
    for file in known.values():
        if file.endswith(_BACKUP) and file.removesuffix(_BACKUP) in known.values():
            continue
        size = sizes.get(file, 0)
        entries = "-"
        try:
            loaded = load_config(path, file)
        except ConfigError as error:
            state = str(error)
        else:
            entries = _entries(loaded.value)
            state = f"{loaded.damage}; read from the backup" if loaded.is_backup else "whole"
        is_whole &= state == "whole"
        fields = {"kind": "config-file", "file": file, "size": size, "state": state, "entries": entries}
        listing.add(fields, file, size, entries, state)
    listing.end()
    return is_whole


def _entries(top: ConfigValue) -> str:
    """Returns the top-level entries of a file, with the sizes of tables."""
    if not isinstance(top, dict):
        return "-"
    return ", ".join(
        f"{render.printable(str(name))}" + (f" ({len(value)})" if isinstance(value, dict | list) else "")
        for name, value in top.items()
    )


def _show_one(loaded: Loaded, *, as_json: bool) -> None:
    if as_json:
        source = "backup" if loaded.is_backup else "file"
        render.emit(
            {
                "kind": "config",
                "file": loaded.file,
                "from": source,
                "damage": loaded.damage or None,
                "value": loaded.value,
            }
        )
        return
    if loaded.is_backup:
        render.say(f"{loaded.file}: the file itself is damaged ({render.printable(loaded.damage)})")
    if Path(loaded.file).name.removesuffix(_BACKUP) == TIMER_FILE and isinstance(loaded.value, dict):
        values = loaded.value
        rows = [
            (item.name, str(values[item.name]), item.unit, item.meaning) for item in TIMER_CHECKPOINT.fields
        ]
        render.table(("field", "value", "unit", "meaning"), rows, numbers=("value",))
        return
    for line in json.dumps(loaded.value, indent=2, ensure_ascii=False).split("\n"):
        render.say(render.printable(line))
