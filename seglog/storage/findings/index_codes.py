"""Codes of findings about the key index, and what it says of records."""

from __future__ import annotations

from typing import Final

from seglog.storage.findings.code import INTACT, KEYS_MISS, NOTE, REPAIR, WARNING, Code

INDEX_CODES: Final[dict[str, Code]] = {
    "index-damaged": Code(
        WARNING,
        "an index file did not fit the log; it is rebuilt from the log",
        KEYS_MISS,
        "index files are rebuilt from the log",
        REPAIR,
    ),
    "index-missing": Code(
        WARNING,
        "messages have keys, but no index file is there",
        KEYS_MISS,
        "index files are rebuilt from the log, as opening the store for writing does; it takes disk space",
        REPAIR,
    ),
    "index-due": Code(
        NOTE,
        "messages have keys and no index file is there yet: the writer was killed before it wrote one",
        "none is lost; opening the store for writing writes the index",
    ),
    "index-short": Code(
        WARNING,
        "the log has keys that the index does not know",
        KEYS_MISS,
        "index files are rebuilt from the log",
        REPAIR,
    ),
    "index-entry-stray": Code(
        WARNING,
        "index entries lead to no record, or to one without keys",
        "none is lost; queries pass over them",
        "index files are rebuilt from the log",
        REPAIR,
    ),
    "index-file-stray": Code(NOTE, "not an index file; RocketMQ ignores it", INTACT),
    "record-keys": Code(
        WARNING,
        "the index has other keys of this record: without record CRC either of them may be damaged",
        "the message may be served with a wrong key, tag or property",
        "a bit that alone explains it is flipped back; else the log is believed, and the index made anew",
        REPAIR,
    ),
}
"""The key index, and what it says of records."""
