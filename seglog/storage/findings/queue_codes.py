"""Codes of findings about queues of all kinds."""

from __future__ import annotations

from typing import Final

from seglog.storage.findings.code import CONFIG, REFUSES, Code, loss, note, warning

_COMPACTION_MENDED: Final = (
    "a queue file is rebuilt from its log file; a log file that is not whole is removed, and rebuilt"
    " from the commit log as far as that reaches"
)
QUEUE_CODES: Final[dict[str, Code]] = {
    "queue-length-unknown": warning(
        "nothing says how long queue files must be",
        "none is lost, but nothing is written to the store; RocketMQ does not start, unless no file is left",
        "repair, once it is told the length; without it RocketMQ makes the files again when it starts",
        "seglog repair --queue-file-bytes BYTES STORE",
    ),
    "queue-missing": warning(
        "the log has messages of a queue that has no files",
        "none is lost; RocketMQ rebuilds it after a crash, or where no queue has a file; else it never"
        " serves them",
        "the queue is rebuilt from the log",
    ),
    "queue-short": warning(
        "the log has messages that their queue does not know",
        "none is lost, but RocketMQ may not serve them, and may give their offsets again",
        "the queue is rebuilt from the log",
    ),
    "queue-due": note(
        "the log ends with messages that their queue does not know yet: the writer was killed before that",
        "none is lost; opening the store for writing writes the queue",
    ),
    "queue-beyond-log": warning(
        "queue units lead behind the end of the log",
        "consumers are told of messages that are not there",
        "units behind the log's end are cut off and zeroed",
    ),
    "queue-unit-wrong": warning(
        "queue units disagree with the log",
        "none is lost, but RocketMQ serves others in their place or stops there",
        "the units are rebuilt from the log",
    ),
    "queue-file-empty": warning(
        "a queue file behind the last unit of its queue, all zeros: power was lost before its first unit",
        "none is lost, but RocketMQ counts a message that is not there, or does not start",
        "the file is removed",
    ),
    "queue-file-due": note(
        "a queue file of zeros right behind the last unit: power was lost before its first unit",
        "none is lost; opening the store for writing removes the file; RocketMQ counts a message that is not"
        " there, or does not start",
    ),
    "queue-unit-stray": warning(
        "queue units lead to no message of this queue",
        "consumers are told of messages that are not there",
        "the units are rebuilt from the log",
    ),
    "queue-stray": warning(
        "a queue of another store: neither the log nor topics.json has its topic",
        "none is lost; RocketMQ makes a topic of it",
        "its files are moved to seglog/stray; opening the store keeps their units in seglog/attic",
    ),
    "queue-gap": loss(
        "messages are missing in a queue",
        "the log has no record for these offsets, or those of other messages where they lay",
        "the offsets stay left out, with units that RocketMQ passes over",
    ),
    "queue-file-size": warning(
        "a queue file is not as long as the others",
        REFUSES,
        "the queue is rebuilt from the log",
    ),
    "queue-file-stray": warning(
        "not a queue file; RocketMQ refuses to start with it",
        REFUSES,
        "the file is moved to seglog/stray",
    ),
    "rocksdb-queues": note(
        "queues are in RocksDB, which seglog does not read: they are not looked at; what queue files lack is"
        " read from the log, and nothing is written to the store",
        "none is lost by that; those that the log lost are counted by queue files alone",
    ),
    "rocksdb-damaged": warning(
        "RocketMQ cannot open a RocksDB as it is: a file of it is missing, or is not whole",
        "none of the log is lost; RocketMQ does not start, or rebuilds what it kept there from the log",
        "put the whole folder back from a copy of the store; the log itself can be read and exported",
        "seglog export --allow-lost -o FILE STORE",
    ),
    "queue-deleted": note(
        "the topic is not in topics.json: deleted, its records are left to retention",
        "those of a deleted topic are not served",
    ),
    "queue-kind": warning(
        "the topic's queue.type disagrees with the folder that holds its queue",
        REFUSES,
        "a repair mends what a name one byte off or the backup proves; else correct queue.type in"
        " config/topics.json, or move the queue's folder away",
        CONFIG,
    ),
    "queue-beyond-topic": note(
        "the topic has fewer queues in topics.json than have messages",
        "consumers are not sent to the queues beyond that number",
        "raise readQueueNums of the topic until they are consumed",
    ),
    "ext-missing": warning(
        "queue units lead to filter data in consumequeue_ext that is not there",
        "none is lost; filters of SQL92 groups are computed again for each",
        "the units get the hash of the tag from the log",
    ),
    "ext-wrong": warning(
        "filter data in consumequeue_ext has another tag or time than the message that leads to it",
        "none is lost; consumers with a filter may miss some",
        "the units get the hash of the tag from the log",
    ),
    "ext-file": warning(
        "a file of consumequeue_ext is of another length than the others, or no such file",
        REFUSES,
        "the file gets its length, or is moved to seglog/stray; units get the hash of the tag from the log",
    ),
    "compaction-missing": warning(
        "a compaction topic has messages, but no own log",
        "after a clean stop RocketMQ serves none of the topic; the commit log has them still",
        "it is rebuilt from the commit log",
    ),
    "compaction-leftover": warning(
        "a compaction did not finish",
        "RocketMQ refuses to start, or serves stale messages after the next compaction",
        "the leftover is removed",
    ),
    "compaction-pair": warning(
        "a log file of a compaction topic has no queue file of that name, or the other way",
        "RocketMQ refuses to start, or deletes the messages of that file from the topic",
        _COMPACTION_MENDED,
    ),
    "compaction-file": warning(
        "a file of a compaction topic is of a wrong length, or no such file",
        REFUSES,
        _COMPACTION_MENDED,
    ),
    "compaction-damaged": warning(
        "messages in the own log of a compaction topic cannot be read",
        "the topic does not serve them; the commit log may have them still",
        _COMPACTION_MENDED,
    ),
}
"""Queues of all kinds."""
