"""Codes of findings about the key index, and what it says of records."""

from __future__ import annotations

from typing import Final

from seglog.storage.findings.code import INTACT, KEYS_MISS, Code, note, warning

INDEX_CODES: Final[dict[str, Code]] = {
    "index-damaged": warning(
        "an index file did not fit the log; it is rebuilt from the log",
        KEYS_MISS,
        "index files are rebuilt from the log",
    ),
    "index-missing": warning(
        "messages have keys, but no index file is there",
        KEYS_MISS,
        "index files are made from the log, as opening the store for writing does, where the store shows how"
        " they are divided; --index-division gives it",
    ),
    "index-due": note(
        "an index file is not there yet, or has no entry: the writer was killed before it wrote one",
        "none is lost; opening the store for writing writes the index",
    ),
    "index-short": warning(
        "the log has keys that the index does not know",
        KEYS_MISS,
        "index files are rebuilt from the log",
    ),
    "index-entry-stray": warning(
        "index entries lead to no record, or to one without keys",
        "none is lost; queries pass over them",
        "index files are rebuilt from the log",
    ),
    "index-file-stray": note("not an index file; RocketMQ ignores it", INTACT),
    "record-keys": warning(
        "the index has other keys of this record: without record CRC either of them may be damaged",
        "the message may be served with a wrong key, tag or property",
        "a bit that alone explains it is flipped back; else the log is believed, and the index rebuilt",
    ),
}
"""The key index, and what it says of records."""
