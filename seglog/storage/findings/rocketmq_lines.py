"""What RocketMQ logs when it meets what a finding names: a search for the line finds the finding.

The lines are those of RocketMQ 5.4.0 (``store.log``, ``storeerror.log``, ``broker.log``), with ``…`` where it
puts a value.
"""

from __future__ import annotations

from typing import Final

_LENGTH: Final = "… length not matched message store config value, please check it manually"
_BROKEN_RECORD: Final = (
    "found a illegal magic code 0x…",
    "CRC check failed. bodyCRC=…, currentCRC=…",
    "[BUG]read total count not equals msg total size. totalSize=…",
    "found a half message at …, it will be truncated.",
)
_EMPTY: Final = "… size is 0, auto delete. is_ok: …"
_ORDER: Final = "[BUG]logic queue order maybe wrong, expectLogicOffset: … currentLogicOffset: …"
_CUT_QUEUES: Final = "maxPhyOffsetOfConsumeQueue(…) >= processOffset(…), truncate dirty logic files"
_LOAD_FAILED: Final = "load … failed, and try to load backup file"
_NOT_FOUND: Final = "selectMappedBuffer request pos invalid, request pos: …"

LINES: Final[dict[str, tuple[str, ...]]] = {
    "log-hole": _BROKEN_RECORD,
    "record-repairable": _BROKEN_RECORD,
    "log-torn-tail": ("found a half message at …, it will be truncated.", "recover physics file end, …"),
    "log-tail-lost": (_CUT_QUEUES, _NOT_FOUND),
    "messages-lost": (_CUT_QUEUES, _NOT_FOUND),
    "log-file-missing": (
        "[BUG]The mappedFile queue's data is damaged, the adjacent mappedFile's offset don't match.",
        "Offset not matched. Request offset: …",
    ),
    "log-file-size": (_LENGTH,),
    "log-file-stray": (_LENGTH,),
    "log-spare": (_EMPTY,),
    "log-empty": ("The commitlog files are deleted, and delete the consume queue files",),
    "queue-short": (
        "Try to finish doing reput the messages fall behind during the starting, reputOffset=… maxOffset=…",
    ),
    "queue-beyond-log": (_CUT_QUEUES,),
    "queue-unit-wrong": (_ORDER, "Build consume queue repeatedly, expectLogicOffset: …"),
    "queue-gap": ("fill pre blank space …", _ORDER),
    "queue-file-empty": (_EMPTY,),
    "queue-file-size": (_LENGTH,),
    "queue-file-stray": (_LENGTH,),
    "queue-kind": ("The queue type of topic: … should be …, but is …",),
    "ext-missing": ("[BUG] Consume queue extend unit(…) is not found!",),
    "ext-wrong": ("[BUG] can't find consume queue extend file content!addr=…, offsetPy=…, sizePy=…",),
    "index-damaged": ("load file … error",),
    "checkpoint-missing": ("store checkpoint file not exists, …",),
    "not-closed": ("last shutdown abnormally, store path root dir: …",),
    "epoch-damaged": (
        "Error happen when init epoch entries from epochFile",
        "Entries crc32 not match, file=…",
    ),
    "epoch-beyond-log": ("Failed to find a consistent point between masterEpoch:… and slaveEpoch:…",),
    "epoch-tail": ("Truncate slave log to … success, change to transfer state",),
    "in-use": ("Lock failed, MQ already started, lock status: …",),
    "config-damaged": (_LOAD_FAILED,),
    "config-lost": (_LOAD_FAILED,),
    "config-backup-only": (_LOAD_FAILED,),
    "delay-offset-beyond": ("schedule CQ offset invalid. offset=…, cqMaxOffset=…, queueId=…",),
    "delay-offset-below": ("schedule CQ offset invalid. offset=…, cqMinOffset=…, queueId=…",),
    "timer-check-missing": ("timer checkpoint file not exists, …",),
    "timer-check-ahead": ("Timer currQueueOffset:… is larger than maxOffsetInQueue:…",),
    "timer-wheel-size": ("Timer wheel length:… != expected:…",),
    "timer-slot-wrong": ("dequeue time:… but read nothing from timerLog",),
    "timer-log-damaged": ("Recover timerLog error",),
    "timer-log-file": (_LENGTH,),
    "timer-unit-stray": ("Fail to read msg from commitLog offsetPy:… sizePy:…",),
    "file-permission": ("Failed to create file …", "Failed to map file …"),
    "file-kind": ("Failed to create file …", "Failed to map file …"),
}
"""By code of a finding, what RocketMQ logs; codes of what it does not notice have none."""


def lines_of(code: str) -> tuple[str, ...]:
    """Returns what RocketMQ logs where it meets what a code of a finding stands for, or nothing."""
    return LINES.get(code, ())


def codes_of_lines() -> dict[str, list[str]]:
    """Returns, for each line that RocketMQ logs, the codes of the findings that it is logged for."""
    codes: dict[str, list[str]] = {}
    for code, lines in LINES.items():
        for line in lines:
            codes.setdefault(line, []).append(code)
    return codes
