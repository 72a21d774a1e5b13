"""Every code that a finding can have: how much it matters, what it means, and what would put it right.

``docs/findings.md`` is made from this table. A code is stable: programs match it, words around it may change.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Final


class Severity(enum.Enum):
    """How much a finding matters."""

    NOTE = "note"
    """Normal, or repaired without loss by opening the store."""
    WARNING = "warning"
    """Derived data was wrong, or RocketMQ would do harm or not start; the log is whole."""
    LOSS = "loss"
    """Messages cannot be read."""


@dataclass(frozen=True, slots=True)
class Code:
    """What a code stands for.

    Attributes:
        severity: How much it matters.
        meaning: What it is, in a sentence.
        for_messages: What it means for messages.
        fix: What would put it right; empty where nothing need be done.
        command: What to type for that, with ``STORE`` for the directory and ``PLACE`` for the physical
            offset; empty if no command does it.
    """

    severity: Severity
    meaning: str
    for_messages: str
    fix: str = ""
    command: str = ""


_NOTE: Final = Severity.NOTE
_WARNING: Final = Severity.WARNING
_LOSS: Final = Severity.LOSS
_REPAIR: Final = "seglog repair STORE"
_SEAL: Final = "seglog verify --seal STORE"
_CONFIG: Final = "seglog config show STORE"
_INTACT: Final = "none is lost"
_KEYS_MISS: Final = "none is lost; queries by key miss some"
_REFUSES: Final = "none is lost, but RocketMQ does not start"

LOG_CODES: Final[dict[str, Code]] = {
    "log-hole": Code(
        _LOSS,
        "records in the middle of the log cannot be read; later ones can",
        "those in the hole are lost; after a crash RocketMQ would cut off all that follow",
        "what can be known is written again, such as one flipped bit; otherwise tombstones take the places,"
        " so that the rest stays",
        _REPAIR,
    ),
    "record-mended": Code(
        _NOTE,
        "a record was damaged; a checksum or its queue proved what it had been, and opening wrote it again",
        _INTACT + "; what was written over is in seglog/attic",
    ),
    "record-repairable": Code(
        _WARNING,
        "a record is damaged, and a checksum or its queue proves what it was; a reader steps over it",
        "none is lost: it is served again once it is mended",
        "opening the store for writing mends it, as repair does",
        _REPAIR,
    ),
    "log-torn-tail": Code(
        _NOTE,
        "the last write did not finish; nothing after it is valid",
        "only what was being written is gone, and nobody was told that it was stored",
        "opening the store cuts it and zeroes what is behind",
        _REPAIR,
    ),
    "log-behind-end": Code(
        _NOTE,
        "bytes behind the end of the log that are no records: remains of a cut, or damage where nothing was",
        _INTACT + "; opening the store moves them to seglog/attic",
    ),
    "log-tail-lost": Code(
        _LOSS,
        "the end of the log is gone; messages-lost names what queue units still know of it",
        "those behind the end are lost",
        "tombstones keep their queue offsets from being given again",
        _REPAIR,
    ),
    "messages-lost": Code(
        _LOSS,
        "records at the end of the log are gone, but queue units know their offsets, which stay taken",
        "these are lost",
        "tombstones keep their queue offsets from being given again",
        _REPAIR,
    ),
    "tombstones": Code(
        _NOTE,
        "messages were lost here earlier; tombstones or empty units keep their offsets, see seglog/holes",
        "lost before; nothing further",
    ),
    "log-file-missing": Code(
        _LOSS,
        "a file in the middle of the commit log is not there",
        "all in it are lost; RocketMQ would put later ones at wrong offsets when it makes queues anew",
        "put the file back from a copy; or a file of tombstones takes its place",
        _REPAIR,
    ),
    "log-file-size": Code(
        _WARNING,
        "a commit-log file is not as long as the others",
        "none is lost by the length itself, but RocketMQ does not start",
        "the file is made as long as the others",
        _REPAIR,
    ),
    "log-length-unknown": Code(
        _WARNING,
        "nothing says how long the files of the log must be: the only one was cut or grew, or all of them",
        "none is lost by the length itself, but RocketMQ does not start, and nothing is written to the store",
        "repair, once it is told the length",
        "seglog repair --segment-bytes BYTES STORE",
    ),
    "log-file-misnamed": Code(
        _WARNING,
        "the records of a file in commitlog/ say that it is another file of the log, or a copy of one",
        "none is lost but those of a file under a copy, which `log-hole` names; RocketMQ serves"
        " none of the file, and cuts the log there after a crash",
        "the file gets its name; a copy is moved to seglog/stray",
        _REPAIR,
    ),
    "log-file-stray": Code(
        _WARNING,
        "not a commit-log file, nor one that the log lacks; RocketMQ refuses to start with it",
        _REFUSES,
        "the file is moved to seglog/stray",
        _REPAIR,
    ),
    "log-spare": Code(_NOTE, "a segment file prepared ahead, still empty", _INTACT),
    "log-block-changed": Code(
        _WARNING,
        "bytes changed since they were written; their records are served if each proves itself",
        "those that do not prove themselves are lost",
        "look at all of it",
        "seglog check STORE",
    ),
    "log-empty": Code(
        _LOSS,
        "there is no commit log, but other files of the store know of one",
        "none can be read; RocketMQ would delete the queues, and seglog refuses to open the store",
        "mount the disk of the log, put it back from a copy, or name a link to it: --follow commitlog",
    ),
    "file-unreadable": Code(
        _LOSS,
        "the file cannot be read: no permission, or the disk gives errors",
        "what it holds was not looked at, and may be whole",
        "run as the owner of the store; on disk errors copy the store to another disk first",
    ),
    "recovery-point-unused": Code(_NOTE, "the recovery point is in doubt; the whole log was walked", _INTACT),
    "seal-rot": Code(
        _LOSS,
        "bytes of a sealed segment changed, and nobody wrote them",
        "those in the changed blocks may be damaged, even where their body's checksum holds",
        "put the file back from a copy; or damaged records become tombstones",
        _REPAIR,
    ),
    "seal-rot-unused": Code(
        _WARNING,
        "bytes behind the last record of a sealed segment changed",
        _INTACT + "; the disk or memory is in doubt",
        "seal the segment anew once its records are known to be whole",
        _SEAL,
    ),
    "seal-stale": Code(
        _WARNING,
        "the log was written anew since this segment was sealed",
        _INTACT,
        "the segment is sealed anew",
        _SEAL,
    ),
    "seal-unreadable": Code(
        _WARNING,
        "not a whole seal; the segment was checked by its records",
        _INTACT,
        "the segment is sealed anew",
        _SEAL,
    ),
    "seal-missing": Code(
        _NOTE, "a full segment without seal; it was checked by its records", _INTACT, "seal it", _SEAL
    ),
    "record-queue-offset": Code(
        _WARNING,
        "a record's queue offset cannot be; the queue's file says where it belongs, or it is left out",
        "a record that no queue file has a place for is not served",
        "the record gets the offset that its queue knows; its checksum is made anew",
        _REPAIR,
    ),
    "topic-name": Code(
        _LOSS,
        "records of a topic that no folder can be called like have no queue",
        "they are in the log, but no consumer gets them",
        "dump finds them in the log",
        "seglog dump --log STORE",
    ),
}
"""The commit log, its seals and its records."""

_COMPACTION_MENDED: Final = (
    "a queue file is rebuilt from its log file; a log file that is not whole is removed, and rebuilt"
    " from the commit log as far as that reaches"
)
QUEUE_CODES: Final[dict[str, Code]] = {
    "queue-length-unknown": Code(
        _WARNING,
        "nothing says how long queue files must be",
        "none is lost, but nothing is written to the store; RocketMQ does not start, unless no file is left",
        "repair, once it is told the length; without it RocketMQ makes the files again when it starts",
        "seglog repair --queue-file-bytes BYTES STORE",
    ),
    "queue-missing": Code(
        _WARNING,
        "the log has messages of a queue that has no files",
        "none is lost; after a clean stop RocketMQ would never serve them",
        "the queue is rebuilt from the log",
        _REPAIR,
    ),
    "queue-short": Code(
        _WARNING,
        "the log has messages that their queue does not know",
        "none is lost, but RocketMQ may not serve them, and may give their offsets again",
        "the queue is rebuilt from the log",
        _REPAIR,
    ),
    "queue-beyond-log": Code(
        _WARNING,
        "queue units lead behind the end of the log",
        "consumers are told of messages that are not there",
        "units behind the log's end are cut off and zeroed",
        _REPAIR,
    ),
    "queue-unit-wrong": Code(
        _WARNING,
        "queue units disagree with the log",
        "none is lost, but RocketMQ serves others in their place or stops there",
        "the units are rebuilt from the log",
        _REPAIR,
    ),
    "queue-file-empty": Code(
        _WARNING,
        "a queue file behind the last unit of its queue, all zeros: power was lost before its first unit",
        "none is lost, but RocketMQ counts a message that is not there, or does not start",
        "the file is removed",
        _REPAIR,
    ),
    "queue-unit-stray": Code(
        _WARNING,
        "queue units lead to no message of this queue",
        "consumers are told of messages that are not there",
        "the units are rebuilt from the log",
        _REPAIR,
    ),
    "queue-gap": Code(
        _LOSS,
        "messages are missing in a queue",
        "the log has no record for these offsets, or those of other messages where they lay",
        "the offsets stay left out, with units that RocketMQ passes over",
        _REPAIR,
    ),
    "queue-file-size": Code(
        _WARNING,
        "a queue file is not as long as the others",
        _REFUSES,
        "the queue is rebuilt from the log",
        _REPAIR,
    ),
    "queue-file-stray": Code(
        _WARNING,
        "not a queue file; RocketMQ refuses to start with it",
        _REFUSES,
        "the file is moved to seglog/stray",
        _REPAIR,
    ),
    "queue-deleted": Code(
        _NOTE,
        "the topic is not in topics.json: deleted, its records are left to retention",
        "those of a deleted topic are not served",
    ),
    "queue-kind": Code(
        _WARNING,
        "the topic's queue.type disagrees with the folder that its queue lies in",
        _REFUSES,
        "a repair mends what a name one byte off or the backup proves; else correct queue.type in"
        " config/topics.json, or move the queue's folder away",
        _CONFIG,
    ),
    "queue-beyond-topic": Code(
        _NOTE,
        "the topic has fewer queues in topics.json than have messages",
        "consumers are not sent to the queues beyond that number",
        "raise readQueueNums of the topic until they are consumed",
    ),
    "ext-missing": Code(
        _WARNING,
        "queue units lead to filter data in consumequeue_ext that is not there",
        "none is lost; filters of SQL92 groups are computed again for each",
        "the units get the hash of the tag from the log",
        _REPAIR,
    ),
    "ext-wrong": Code(
        _WARNING,
        "filter data in consumequeue_ext has another tag or time than the message that leads to it",
        "none is lost; consumers with a filter may miss some",
        "the units get the hash of the tag from the log",
        _REPAIR,
    ),
    "ext-file": Code(
        _WARNING,
        "a file of consumequeue_ext is of another length than the others, or no such file",
        _REFUSES,
        "the file gets its length, or is moved to seglog/stray; units get the hash of the tag from the log",
        _REPAIR,
    ),
    "compaction-missing": Code(
        _WARNING,
        "a compaction topic has messages, but no own log",
        "after a clean stop RocketMQ serves none of the topic; the commit log has them still",
        "it is rebuilt from the commit log",
        _REPAIR,
    ),
    "compaction-leftover": Code(
        _WARNING,
        "a compaction did not finish",
        "RocketMQ refuses to start, or serves stale messages after the next compaction",
        "the leftover is removed",
        _REPAIR,
    ),
    "compaction-pair": Code(
        _WARNING,
        "a log file of a compaction topic has no queue file of that name, or the other way",
        "RocketMQ refuses to start, or deletes the messages of that file from the topic",
        _COMPACTION_MENDED,
        _REPAIR,
    ),
    "compaction-file": Code(
        _WARNING,
        "a file of a compaction topic is of a wrong length, or no such file",
        _REFUSES,
        _COMPACTION_MENDED,
        _REPAIR,
    ),
    "compaction-damaged": Code(
        _WARNING,
        "messages in the own log of a compaction topic cannot be read",
        "the topic does not serve them; the commit log may have them still",
        _COMPACTION_MENDED,
        _REPAIR,
    ),
}
"""Queues of all kinds."""

INDEX_CODES: Final[dict[str, Code]] = {
    "index-damaged": Code(
        _WARNING,
        "an index file did not fit the log; it is rebuilt from the log",
        _KEYS_MISS,
        "index files are rebuilt from the log",
        _REPAIR,
    ),
    "index-missing": Code(
        _WARNING,
        "messages have keys, but no index file is there",
        _KEYS_MISS,
        "index files are rebuilt from the log, as opening the store for writing does; it takes disk space",
        _REPAIR,
    ),
    "index-due": Code(
        _NOTE,
        "messages have keys and no index file is there yet: the writer was killed before it wrote one",
        "none is lost; opening the store for writing writes the index",
    ),
    "index-short": Code(
        _WARNING,
        "the log has keys that the index does not know",
        _KEYS_MISS,
        "index files are rebuilt from the log",
        _REPAIR,
    ),
    "index-entry-stray": Code(
        _WARNING,
        "index entries lead to no record, or to one without keys",
        "none is lost; queries pass over them",
        "index files are rebuilt from the log",
        _REPAIR,
    ),
    "index-file-stray": Code(_NOTE, "not an index file; RocketMQ ignores it", _INTACT),
    "record-keys": Code(
        _WARNING,
        "the index has other keys of this record: without record CRC either of them may be damaged",
        "the message may be served with a wrong key, tag or property",
        "a bit that alone explains it is flipped back; else the log is believed, and the index made anew",
        _REPAIR,
    ),
}
"""The key index, and what it says of records."""

CHECKPOINT_CODES: Final[dict[str, Code]] = {
    "checkpoint-missing": Code(_NOTE, "the log is walked whole instead", _INTACT),
    "checkpoint-size": Code(
        _WARNING,
        "the checkpoint is not as long as it should be",
        _INTACT,
        "it is written anew",
        _REPAIR,
    ),
    "checkpoint-behind": Code(_NOTE, "much older than the log; more of it is walked than need be", _INTACT),
    "checkpoint-ahead": Code(
        _WARNING,
        "knows of more than the log holds: the log may have lost its end, or the checkpoint is damaged",
        "the last ones may be lost without any other trace",
        "it is set back to what the log holds",
        _REPAIR,
    ),
    "not-closed": Code(
        _NOTE,
        "an abort file: the last writer crashed or was killed, or is at work",
        "none is lost by that",
        "opening the store recovers it",
    ),
    "rescan-due": Code(
        _NOTE,
        "no queue or no index file is left, and RocketMQ makes them when it starts: abort is there, and the"
        " checkpoint says nothing",
        "none is lost",
        "start RocketMQ once; or let `seglog repair` write queue files, which must know their length",
        "seglog repair --queue-file-bytes BYTES STORE",
    ),
    "in-use": Code(
        _NOTE,
        "a process has the store open for writing; what is said of its newest part is of a moment ago",
        _INTACT,
    ),
}
"""Checkpoint, and how the store was left."""

CONFIG_CODES: Final[dict[str, Code]] = {
    "config-damaged": Code(
        _WARNING,
        "a config file is no JSON; its backup is read instead",
        "none is lost; what was set or consumed since the backup is forgotten",
        "the file is rebuilt from its backup",
        _REPAIR,
    ),
    "config-lost": Code(
        _WARNING,
        "neither a config file nor its backup can be read",
        "none is lost, but RocketMQ does not start, or starts with nothing and delivers all again",
        "the file is rebuilt from what the store says, or moved away",
        _REPAIR,
    ),
    "config-backup-only": Code(
        _NOTE, "only the backup of a config file is there; RocketMQ reads it", _INTACT
    ),
    "config-shape": Code(
        _WARNING,
        "a config file is JSON, but a value in it cannot be",
        "none is lost; RocketMQ may not start, or forget offsets and topics",
        "a repair mends what a name one byte off or the backup proves; correct any other value in the file",
        _CONFIG,
    ),
    "offset-beyond-queue": Code(
        _WARNING,
        "a group's offset is behind the end of the queue",
        "the group misses what is stored next, or RocketMQ starts it at the queue's beginning again",
        "the offset is set to the end of the queue",
        _REPAIR,
    ),
    "offset-below-queue": Code(
        _NOTE,
        "a group's offset is before the first message: retention took some that it had not consumed",
        "the group never got those between",
    ),
    "offset-without-queue": Code(
        _NOTE,
        "a group has an offset in a queue that is not there",
        _INTACT + "; should the topic be created again, the group would miss its first messages",
    ),
    "delay-offset-beyond": Code(
        _WARNING,
        "the offset of a delay level is behind the end of its queue",
        "delayed messages that are stored next are not delivered in time, or at all",
        "the offset is set to the end of the queue",
        _REPAIR,
    ),
    "delay-offset-below": Code(
        _NOTE,
        "the offset of a delay level is before its first message",
        "those that retention took were never delivered",
    ),
    "delay-offset-missing": Code(
        _WARNING,
        "a delay level with messages has no offset",
        "RocketMQ delivers all of that level again",
        "the level gets an offset; what was due in the minute before the log's end may be delivered twice",
        _REPAIR,
    ),
    "half-pending": Code(
        _NOTE,
        "half messages that were neither committed nor rolled back",
        "RocketMQ asks their producers; consumers do not get them yet",
        "where no producer is left to answer, they are committed or rolled back by hand",
        "seglog tx ls STORE",
    ),
    "op-beyond-half": Code(
        _WARNING,
        "an op record names half messages that are not there",
        _INTACT + "; half messages may be lost",
        "nothing need be done if the half messages are named by another finding",
    ),
}
"""Config files, offsets and transactions."""

TIMER_CODES: Final[dict[str, Code]] = {
    "timer-check-missing": Code(
        _WARNING,
        "timer messages, but no config/timercheck",
        "RocketMQ delivers every timer message that is still in the log again",
        "it is written with the end of the timer topic; what was due in the minute before the log's end may"
        " be delivered twice",
        _REPAIR,
    ),
    "timer-check-size": Code(
        _WARNING,
        "config/timercheck is not as long as it should be",
        "RocketMQ may deliver timer messages again",
        "it is written anew",
        _REPAIR,
    ),
    "timer-check-ahead": Code(
        _WARNING,
        "config/timercheck knows more than the timer's log or topic holds",
        "timer messages that are stored next may never be delivered",
        "it is set back to what the log holds",
        _REPAIR,
    ),
    "timer-wheel-missing": Code(
        _WARNING,
        "timer messages wait, but there is no timerwheel",
        "RocketMQ rebuilds it from the timer log as far as that reaches",
        "it is rebuilt from the timer log",
        _REPAIR,
    ),
    "timer-wheel-size": Code(
        _WARNING,
        "the timerwheel is not as long as it should be",
        _REFUSES,
        "it is rebuilt from the timer log",
        _REPAIR,
    ),
    "timer-slot-wrong": Code(
        _WARNING,
        "slots of the timerwheel lead to no unit of the timer log",
        "those of that second are not delivered in time",
        "the wheel is rebuilt from the timer log, which gets what it lacks from the commit log",
        _REPAIR,
    ),
    "timer-log-damaged": Code(
        _WARNING,
        "units in the middle of the timer log cannot be",
        "RocketMQ cuts the timer log there; those behind are enqueued again or never delivered",
        "the timer log is rebuilt from the commit log",
        _REPAIR,
    ),
    "timer-log-file": Code(
        _WARNING,
        "a file of the timer log is of another length than the others, or no such file",
        _REFUSES,
        "the timer log is rebuilt from the commit log",
        _REPAIR,
    ),
    "timer-unit-stray": Code(
        _WARNING,
        "units of the timer log lead to no timer message",
        "RocketMQ passes over them; those that they stood for may never be delivered",
        "the timer log is rebuilt from the commit log",
        _REPAIR,
    ),
}
"""The timer."""

FILE_CODES: Final[dict[str, Code]] = {
    "file-owner": Code(
        _WARNING,
        "belongs to another user than the store's folder",
        "none is lost, but a broker that runs as the owner of the folder may fail on it",
        "give it to the owner of the folder (chown)",
    ),
    "file-permission": Code(
        _WARNING,
        "its owner may not read and write it",
        "none is lost, but a broker that runs as its owner does not start or cannot write",
        "give its owner the rights (chmod u+rw, u+rwx for folders)",
    ),
    "file-kind": Code(
        _WARNING,
        "a link, pipe, device or folder where a file belongs, or something else in place of a folder",
        "RocketMQ does not start, or writes elsewhere than it seems; it is never read or written",
        "put there what belongs there, or remove it; for a folder elsewhere: --follow commitlog",
    ),
    "stray": Code(_NOTE, "neither RocketMQ nor seglog knows this name; both pass over it", _INTACT),
    "own-damaged": Code(
        _WARNING,
        "a file of seglog's own cannot be read, or states lengths that the files of the store disprove",
        _INTACT + "; what it held (evidence, or how to open quickly) is gone, and the files are right",
        "it is removed, and made anew when the store is opened for writing; lengths are corrected",
        _REPAIR,
    ),
    "erase-unfinished": Code(
        _WARNING,
        "an erase was stopped half-way; what it was to write is in seglog/erasing",
        "some that were to be erased are still there, and one may be half written",
        "the erase is finished, before anything else is repaired",
        _REPAIR,
    ),
    "erase-unsound": Code(
        _WARNING,
        "seglog/erasing is damaged, or is not what an erase of this store writes",
        _INTACT,
        "the file is moved to seglog/stray, and nothing that it says is done",
        _REPAIR,
    ),
    "undo-unfinished": Code(
        _WARNING,
        "a repair, or the undo of one, was stopped half-way",
        "none is lost by that; the store is neither as it was nor repaired",
        "the repair is taken back, bit for bit, before anything else is repaired",
        _REPAIR,
    ),
    "undo-unsound": Code(
        _WARNING,
        "an undo pack is damaged, or says what no repair writes",
        _INTACT + "; the repair that it stands for cannot be taken back",
        "the pack is moved to seglog/stray, and nothing that it says is done",
        _REPAIR,
    ),
    "attic": Code(
        _NOTE,
        "bytes that earlier recoveries cut off or wrote over are kept in seglog/attic",
        "what was lost earlier may be found there",
    ),
    "attic-record": Code(
        _LOSS,
        "a record that an earlier opening gave up is in seglog/attic, and proves itself",
        "a tombstone stands in its place; none of these is lost",
        "it is written back where it was",
        _REPAIR,
    ),
    "leftover": Code(
        _NOTE, "a file that was being written when its writer stopped", _INTACT, "the next open removes it"
    ),
}
"""Files and folders as such."""

CODES: Final[dict[str, Code]] = {
    **LOG_CODES,
    **QUEUE_CODES,
    **INDEX_CODES,
    **CHECKPOINT_CODES,
    **CONFIG_CODES,
    **TIMER_CODES,
    **FILE_CODES,
}
"""What each code stands for."""

FAMILIES: Final[dict[str, dict[str, Code]]] = {
    "Commit log": LOG_CODES,
    "Queues": QUEUE_CODES,
    "Key index": INDEX_CODES,
    "Checkpoint, and how the store was left": CHECKPOINT_CODES,
    "Config, offsets, transactions": CONFIG_CODES,
    "Timer": TIMER_CODES,
    "Files and folders": FILE_CODES,
}
"""The codes by what they are about, for the page that is made of them."""
