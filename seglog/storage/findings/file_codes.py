"""Codes of findings about files and folders as such."""

from __future__ import annotations

from typing import Final

from seglog.storage.findings.code import BY_HAND, INTACT, Code, note, warning

FILE_CODES: Final[dict[str, Code]] = {
    "file-owner": warning(
        "belongs to another user than the store's folder",
        "none is lost, but a broker that runs as the owner of the folder may fail on it",
        "give it to the owner of the folder (chown)",
        BY_HAND,
    ),
    "file-permission": warning(
        "its owner may not read and write it",
        "none is lost, but a broker that runs as its owner does not start or cannot write",
        "give its owner the rights (chmod u+rw, u+rwx for folders)",
        BY_HAND,
    ),
    "file-kind": warning(
        "a link, pipe, device or folder where a file belongs, or something else in place of a folder",
        "RocketMQ does not start, or writes elsewhere than it seems; it is never read or written",
        "put there what belongs there, or remove it; for a folder elsewhere: --follow commitlog",
        BY_HAND,
    ),
    "stray": note("neither RocketMQ nor seglog knows this name; both pass over it", INTACT),
    "own-damaged": warning(
        "a file of seglog's own cannot be read, or states lengths that the files of the store disprove",
        INTACT + "; what it held (evidence, or how to open quickly) is gone, and the files are right",
        "it is removed, and rebuilt when the store is opened for writing; lengths are corrected",
    ),
    "erase-unfinished": warning(
        "an erase was stopped half-way; what it was to write is in seglog/erasing",
        "some that were to be erased are still there, and one may be half written",
        "the erase is finished, before anything else is repaired",
    ),
    "erase-unsound": warning(
        "seglog/erasing is damaged, or is not what an erase of this store writes",
        INTACT,
        "the file is moved to seglog/stray, and nothing that it says is done",
    ),
    "undo-unfinished": warning(
        "a repair, or the undo of one, was stopped half-way",
        "none is lost by that; the store is neither as it was nor repaired",
        "the repair is taken back, bit for bit, before anything else is repaired",
    ),
    "undo-unsound": warning(
        "an undo pack is damaged, or says what no repair writes",
        INTACT + "; the repair that it stands for cannot be taken back",
        "the pack is moved to seglog/stray, and nothing that it says is done",
    ),
    "attic": note(
        "bytes that earlier recoveries cut off or wrote over are kept in seglog/attic",
        "what was lost earlier may be found there",
    ),
    "attic-record": warning(
        "a record that an earlier opening gave up is in seglog/attic, and proves itself",
        "a tombstone stands in its place; none of these is lost",
        "it is written back where it was",
    ),
    "leftover": note(
        "a file that was being written when its writer stopped", INTACT, "the next open removes it"
    ),
}
"""Files and folders as such."""
