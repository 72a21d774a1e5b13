"""``seglog inspect checkpoint``: the times up to which the parts of a store were flushed."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import click

from seglog.cli.read.reading import check_store
from seglog.cli.ui import options, render
from seglog.storage.files import read_start
from seglog.storage.format.checkpoint import CHECKPOINT, CHECKPOINT_FILE_BYTES, decode_checkpoint
from seglog.storage.format.names import ABORT_FILE, CHECKPOINT_FILE


@click.command
@options.store
@options.as_json
def command(*, path: Path, as_json: bool) -> None:
    """Show the checkpoint of STORE.

    It is a hint: recovery starts from it instead of from the log's first record. Nothing is lost with it.
    """
    check_store(path)
    files = options.reading(path)
    data = read_start(files, path / CHECKPOINT_FILE, CHECKPOINT_FILE_BYTES)
    values = asdict(decode_checkpoint(data))
    if not data:
        state = "missing: recovery walks the whole log"
    elif len(data) < CHECKPOINT.size_bytes:
        state = f"cut short to {len(data)} bytes: counts as all 0"
    else:
        state = "whole" if any(values.values()) else "all 0: recovery walks the whole log"
    aborted = files.exists(path / ABORT_FILE)
    if as_json:
        render.emit({"kind": "checkpoint", "state": state, "size": len(data), "abort": aborted, **values})
        return
    render.facts({"file": f"{CHECKPOINT_FILE}, {state}", "abort file": "there" if aborted else "none"})
    render.say()
    render.table(
        ("field", "value", "time", "meaning"),
        [
            (
                field.name,
                str(values[field.name]),
                render.time_text(values[field.name]) if field.unit == "ms" and values[field.name] else "-",
                field.meaning,
            )
            for field in CHECKPOINT.fields
        ],
        numbers=("value",),
    )
