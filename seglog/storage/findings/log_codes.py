"""Codes of findings about the commit log, its seals and its records."""

from __future__ import annotations

from typing import Final

from seglog.storage.findings.code import BY_HAND, INTACT, REFUSES, REPAIR, SEAL, Code, loss, note, warning

LOG_CODES: Final[dict[str, Code]] = {
    "log-hole": loss(
        "records in the middle of the log cannot be read; later ones can",
        "those in the hole are lost; after a crash RocketMQ would cut off all that follow",
        "what can be known is written again, such as one flipped bit; otherwise tombstones take the places,"
        " so that the rest stays",
    ),
    "record-mended": note(
        "a record was damaged; a checksum or its queue proved what it had been, and opening wrote it again",
        INTACT + "; what was written over is in seglog/attic",
    ),
    "record-repairable": warning(
        "a record is damaged, and a checksum or its queue proves what it was; a reader steps over it",
        "none is lost: it is served again once it is mended",
        "opening the store for writing mends it, as repair does",
    ),
    "log-torn-tail": note(
        "the last write did not finish; nothing after it is valid",
        "only what was being written is gone; no writer was told that it was stored",
        "opening the store cuts it and zeroes what is behind",
        REPAIR,
    ),
    "log-behind-end": note(
        "bytes behind the end of the log that are no records: remains of a cut, or damage where nothing was",
        INTACT + "; opening the store moves them to seglog/attic",
    ),
    "log-tail-lost": loss(
        "the end of the log is gone; messages-lost names what queue units still know of it",
        "those behind the end are lost",
        "tombstones keep their queue offsets from being given again",
    ),
    "messages-lost": loss(
        "records at the end of the log are gone, but queue units know their offsets, which stay taken",
        "these are lost",
        "tombstones keep their queue offsets from being given again",
    ),
    "tombstones": note(
        "messages were lost here earlier, see seglog/holes; the queue offsets of those it names stay taken",
        "lost before; nothing further",
    ),
    "log-file-missing": loss(
        "a file in the middle of the commit log is not there",
        "all in it are lost; RocketMQ would put later ones at wrong offsets when it rebuilds queues",
        "put the file back from a copy; or a file of tombstones takes its place",
    ),
    "log-file-foreign": loss(
        "a file of the log holds other records than those that queue units lead to: it is of another store",
        "those that were there are lost, and RocketMQ serves the others in their place",
        "put the right file back from a copy first; a repair writes the loss down and makes the queues of the"
        " file's records",
    ),
    "log-file-size": warning(
        "a commit-log file is not as long as the others",
        "none is lost by the length itself, but RocketMQ does not start",
        "the file is made as long as the others",
    ),
    "log-file-doubled": warning(
        "two folders of the log have a file of this name, of which one is read",
        "those of the file that is not read may be here, and not lost; RocketMQ reads both in a row",
        "move the one out of the store that is a copy, or give it the name that its records state;"
        " until then nothing is written to the store",
        BY_HAND,
    ),
    "log-folder": warning(
        "a folder beside commitlog/ holds files of the log, as their records say; no configuration states it",
        "none is lost, but a broker whose storePathCommitLog does not name it does not find those in it",
        "state the folders by the broker's configuration, given with --broker-conf or put into the store as"
        " broker.conf; until then nothing is written to the store",
        "seglog repair --broker-conf FILE STORE",
    ),
    "log-length-unknown": warning(
        "nothing says how long the files of the log must be: the only one was cut or grew, or all of them",
        "none is lost by the length itself, but RocketMQ does not start, and nothing is written to the store",
        "repair, once it is told the length",
        "seglog repair --segment-bytes BYTES STORE",
    ),
    "log-file-misnamed": warning(
        "the records of a file in commitlog/ say that it is another file of the log, or a copy of one",
        "none is lost but those of a file under a copy, which `log-hole` names; RocketMQ serves"
        " none of the file, and cuts the log there after a crash",
        "the file gets its name; a copy is moved to seglog/stray",
    ),
    "log-file-packed": warning(
        "a compressed file in commitlog/ has the name of a file that the log lacks",
        "its messages are not read; RocketMQ refuses to start with it",
        "nothing is repaired before it is unpacked in its place (as by gunzip), or moved out of the store",
    ),
    "log-file-stray": warning(
        "not a commit-log file, nor one that the log lacks; RocketMQ refuses to start with it",
        REFUSES,
        "the file is moved to seglog/stray",
    ),
    "log-spare": note("a segment file prepared ahead, still empty", INTACT),
    "log-block-changed": warning(
        "bytes changed since they were written; their records are served if each proves itself",
        "those that do not prove themselves are lost",
        "look at all of it",
        "seglog check STORE",
    ),
    "log-empty": loss(
        "there is no commit log, but other files of the store know of one",
        "none can be read; RocketMQ would delete the queues, and seglog refuses to open the store",
        "mount the disk of the log, put it back from a copy, or name a link to it: --follow commitlog",
        BY_HAND,
    ),
    "file-unreadable": loss(
        "the file cannot be read: no permission, or the disk gives errors",
        "what it holds was not looked at, and may be whole",
        "run as the owner of the store; on disk errors copy the store to another disk first",
        BY_HAND,
    ),
    "recovery-point-unused": note("the recovery point is in doubt; the whole log was walked", INTACT),
    "seal-rot": loss(
        "bytes of a sealed segment changed without a write",
        "those in the changed blocks may be damaged, even where their body's checksum holds",
        "put the file back from a copy; records that are known to be damaged have findings of their own",
        BY_HAND,
    ),
    "seal-rot-unused": warning(
        "bytes behind the last record of a sealed segment changed",
        INTACT + "; the disk or memory is in doubt",
        "seal the segment again once its records are known to be whole",
        SEAL,
    ),
    "seal-stale": warning(
        "the log was rewritten since this segment was sealed",
        INTACT,
        "the segment is sealed again",
        SEAL,
    ),
    "seal-unreadable": warning(
        "not a whole seal; the segment was checked by its records",
        INTACT,
        "the segment is sealed again",
        SEAL,
    ),
    "seal-missing": note(
        "a full segment without seal; it was checked by its records", INTACT, "seal it", SEAL
    ),
    "record-queue-offset": warning(
        "a record's queue offset cannot be; the queue's file says where it belongs, or it is left out",
        "a record that no queue file has a place for is not served",
        "the record gets the offset that its queue knows; its checksum is computed again",
    ),
    "topic-name": loss(
        "records of a topic that no folder can be called like have no queue",
        "they are in the log, but no consumer gets them",
        "dump finds them in the log",
        "seglog dump --log STORE",
    ),
}
"""The commit log, its seals and its records."""
