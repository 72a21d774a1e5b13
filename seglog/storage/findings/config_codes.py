"""Codes of findings about the checkpoint, config files, offsets and transactions."""

from __future__ import annotations

from typing import Final

from seglog.storage.findings.code import CONFIG, INTACT, NOTE, REPAIR, WARNING, Code

CHECKPOINT_CODES: Final[dict[str, Code]] = {
    "checkpoint-missing": Code(NOTE, "the log is walked whole instead", INTACT),
    "checkpoint-size": Code(
        WARNING,
        "the checkpoint is not as long as it should be",
        INTACT,
        "it is written anew",
        REPAIR,
    ),
    "checkpoint-behind": Code(NOTE, "much older than the log; more of it is walked than need be", INTACT),
    "checkpoint-ahead": Code(
        WARNING,
        "knows of more than the log holds: the log may have lost its end, or the checkpoint is damaged",
        "the last ones may be lost without any other trace",
        "it is set back to what the log holds",
        REPAIR,
    ),
    "not-closed": Code(
        NOTE,
        "an abort file: the last writer crashed or was killed, or is at work",
        "none is lost by that",
        "opening the store recovers it",
    ),
    "rescan-due": Code(
        NOTE,
        "no queue or no index file is left, and RocketMQ makes them when it starts: abort is there, and the"
        " checkpoint says nothing",
        "none is lost",
        "start RocketMQ once; or let `seglog repair` write queue files, which must know their length",
        "seglog repair --queue-file-bytes BYTES STORE",
    ),
    "in-use": Code(
        NOTE,
        "a process has the store open for writing; what is said of its newest part is of a moment ago",
        INTACT,
    ),
}
"""Checkpoint, and how the store was left."""

CONFIG_CODES: Final[dict[str, Code]] = {
    "config-damaged": Code(
        WARNING,
        "a config file is no JSON; its backup is read instead",
        "none is lost; what was set or consumed since the backup is forgotten",
        "the file is rebuilt from its backup",
        REPAIR,
    ),
    "config-lost": Code(
        WARNING,
        "neither a config file nor its backup can be read",
        "none is lost, but RocketMQ does not start, or starts with nothing and delivers all again",
        "the file is rebuilt from what the store says, or moved away",
        REPAIR,
    ),
    "config-backup-only": Code(NOTE, "only the backup of a config file is there; RocketMQ reads it", INTACT),
    "config-shape": Code(
        WARNING,
        "a config file is JSON, but a value in it cannot be",
        "none is lost; RocketMQ may not start, or forget offsets and topics",
        "a repair mends what a name one byte off or the backup proves; correct any other value in the file",
        CONFIG,
    ),
    "offset-beyond-queue": Code(
        WARNING,
        "a group's offset is behind the end of the queue",
        "the group misses what is stored next, or RocketMQ starts it at the queue's beginning again",
        "the offset is set to the end of the queue",
        REPAIR,
    ),
    "offset-below-queue": Code(
        NOTE,
        "a group's offset is before the first message: retention took some that it had not consumed",
        "the group never got those between",
    ),
    "offset-without-queue": Code(
        NOTE,
        "a group has an offset in a queue that is not there",
        INTACT + "; should the topic be created again, the group would miss its first messages",
    ),
    "delay-offset-beyond": Code(
        WARNING,
        "the offset of a delay level is behind the end of its queue",
        "delayed messages that are stored next are not delivered in time, or at all",
        "the offset is set to the end of the queue",
        REPAIR,
    ),
    "delay-offset-below": Code(
        NOTE,
        "the offset of a delay level is before its first message",
        "those that retention took were never delivered",
    ),
    "delay-offset-missing": Code(
        WARNING,
        "a delay level with messages has no offset",
        "RocketMQ delivers all of that level again",
        "the level gets an offset; what was due in the minute before the log's end may be delivered twice",
        REPAIR,
    ),
    "half-pending": Code(
        NOTE,
        "half messages that were neither committed nor rolled back",
        "RocketMQ asks their producers; consumers do not get them yet",
        "where no producer is left to answer, they are committed or rolled back by hand",
        "seglog tx ls STORE",
    ),
    "op-beyond-half": Code(
        WARNING,
        "an op record names half messages that are not there",
        INTACT + "; half messages may be lost",
        "nothing need be done if the half messages are named by another finding",
    ),
}
"""Config files, offsets and transactions."""
