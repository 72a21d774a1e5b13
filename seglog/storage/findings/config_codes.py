"""Codes of findings about the checkpoint, config files, offsets and transactions."""

from __future__ import annotations

from typing import Final

from seglog.storage.findings.code import BY_HAND, CONFIG, INTACT, Code, note, warning

CHECKPOINT_CODES: Final[dict[str, Code]] = {
    "checkpoint-missing": note("the log is walked whole instead", INTACT),
    "checkpoint-size": warning(
        "the checkpoint has the wrong length",
        INTACT,
        "it is rewritten",
    ),
    "checkpoint-behind": note("much older than the log; more of it is walked than need be", INTACT),
    "checkpoint-ahead": warning(
        "knows of more than the log holds: the log may have lost its end, or the checkpoint is damaged",
        "the last ones may be lost without any other trace",
        "it is set back to what the log holds",
    ),
    "not-closed": note(
        "an abort file: the last writer crashed or was killed, or is at work",
        "none is lost by that",
        "opening the store recovers it",
    ),
    "rescan-due": note(
        "no queue or no index file is left, and RocketMQ makes them when it starts: abort is there, and the"
        " checkpoint says nothing",
        "none is lost",
        "start RocketMQ once; or let `seglog repair` write queue files, which must know their length",
        "seglog repair --queue-file-bytes BYTES STORE",
    ),
    "epoch-damaged": warning(
        "the file of epochs (controller mode) cannot be read, nor its backup",
        "none is lost, but a slave does not find where its log and that of its master part",
        "put it back from a copy; or remove it, and epochs start over with the next master",
        BY_HAND,
    ),
    "epoch-backup-only": note(
        "the file of epochs (controller mode) is missing or cannot be read; RocketMQ reads its backup", INTACT
    ),
    "epoch-beyond-log": warning(
        "an epoch (controller mode) begins behind the end of the log: the log has lost its end, or was cut",
        "those of that epoch are not here; its other replicas may have them",
        "look at the same place on the other replicas before one becomes master",
        BY_HAND,
    ),
    "epoch-tail": note(
        "in controller mode, a tail of the log that not all replicas had confirmed when the checkpoint was"
        " written; where this was a slave that was cutting its log, RocketMQ serves what it had cut again",
        "these may be unknown to the master: a slave asks it when it starts, a broker alone keeps them",
        "see what is there",
        "seglog dump --log STORE",
    ),
    "in-use": note(
        "a process has the store open for writing; what is said of its newest part is of a moment ago",
        INTACT,
    ),
}
"""Checkpoint, and how the store was left."""

CONFIG_CODES: Final[dict[str, Code]] = {
    "config-damaged": warning(
        "a config file is no JSON; its backup is read instead",
        "none is lost; what was set or consumed since the backup is forgotten",
        "the file is rebuilt from its backup",
    ),
    "config-lost": warning(
        "neither a config file nor its backup can be read, or both are gone",
        "none is lost, but RocketMQ does not start, or starts with nothing and delivers all again",
        "offsets come back from their history, topics from their queues, and damaged files are moved away;"
        " restore any other file from a copy of the store, or set offsets with `seglog offsets reset`",
    ),
    "rocksdb-tables": note(
        "the broker keeps these tables in RocksDB, which seglog does not read: they are not looked at, and"
        " JSON files of them may be from before",
        "none is lost by that; what groups have consumed is known to the broker alone",
    ),
    "config-backup-only": note("only the backup of a config file is there; RocketMQ reads it", INTACT),
    "config-shape": warning(
        "a config file is JSON, but a value in it cannot be",
        "none is lost; RocketMQ may not start, or forget offsets and topics",
        "a repair mends what a name one byte off or the backup proves; correct any other value in the file",
        CONFIG,
    ),
    "offset-beyond-queue": warning(
        "a group's offset is behind the end of the queue",
        "the group misses what is stored next, or RocketMQ starts it at the queue's beginning again",
        "the offset is set to the end of the queue",
    ),
    "offset-below-queue": note(
        "a group's offset is before the first message: retention took some that it had not consumed",
        "the group never got those between",
    ),
    "offset-without-queue": note(
        "a group has an offset in a queue that is not there",
        INTACT + "; should the topic be created again, the group would miss its first messages",
    ),
    "delay-offset-beyond": warning(
        "the offset of a delay level is behind the end of its queue",
        "delayed messages that are stored next are not delivered in time, or at all",
        "the offset is set to the end of the queue",
    ),
    "delay-offset-below": note(
        "the offset of a delay level is before its first message",
        "those that retention took were never delivered",
    ),
    "delay-offset-missing": warning(
        "a delay level with messages has no offset",
        "RocketMQ delivers all of that level again",
        "the level gets an offset; what was due in the minute before the log's end may be delivered twice",
    ),
    "half-pending": note(
        "half messages that were neither committed nor rolled back",
        "RocketMQ asks their producers; consumers do not get them yet",
        "where no producer is left to answer, they are committed or rolled back by hand",
        "seglog tx ls STORE",
    ),
    "op-beyond-half": warning(
        "an op record names half messages that are not there",
        INTACT + "; half messages may be lost",
        "nothing need be done if the half messages are named by another finding",
        BY_HAND,
    ),
}
"""Config files, offsets and transactions."""
