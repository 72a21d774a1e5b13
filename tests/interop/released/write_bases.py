"""Writes the stores of :data:`~tests.interop.released.bases.WRITTEN` with their releases of RocketMQ.

``python -m tests.interop.released.write_bases FOLDER`` writes them to a folder that does not exist, with what
a build of each release takes, and packs them into ``tests/golden/releases.tar.xz``. It takes five minutes:
RocketMQ looks for files to delete a minute after its start.
"""

from __future__ import annotations

import functools
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, replace
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from typing import Any, Final

from seglog.broker.tables.groups import group_to_config
from seglog.remoting.codes import RequestCode
from seglog.remoting.command import Request
from seglog.remoting.headers import SendMessageHeader, UpdateConsumerOffsetHeader
from seglog.remoting.subscription_group import SubscriptionGroup
from seglog.storage.format.record.sys_flag import (
    TRANSACTION_COMMIT,
    TRANSACTION_PREPARED,
    TRANSACTION_ROLLBACK,
)
from tests.interop.judging import toolchain
from tests.interop.judging.java_broker import JavaBroker
from tests.interop.judging.judge import Judge
from tests.interop.judging.questions import JavaMessages, camel_case, target_of
from tests.interop.released.bases import ARCHIVE, OLD, WRITTEN, Base

_RETENTION_S: Final = 66
"""A broker looks for files to delete a minute after its start, then each ten seconds."""
_AT_ONCE: Final[dict[str, Any]] = {
    "deleteWhen": ";".join(f"{hour:02}" for hour in range(24)),
    "fileReservedTime": 1,
}
_HOURS_AGO: Final = 5
_FILES_TAKEN: Final = 2
_END_TRANSACTION: Final = 37
_STATES: Final = (TRANSACTION_COMMIT, TRANSACTION_ROLLBACK)


def plain(rounds: int = 8) -> list[JavaMessages]:
    """Returns messages of three topics whose queues take turns: four files of a log."""
    made = []
    for number in range(rounds):
        orders = JavaMessages(
            topic="Orders", count=25, first=25 * number, body_bytes=700, tags="TagA", keys="o"
        )
        events = JavaMessages(topic="Events", count=9, first=9 * number, body_bytes=150, keys="e")
        rare = JavaMessages(topic="Rare", first=number, body_bytes=40)
        made += [replace(orders, queue_id=number % 3), replace(events, queue_id=number % 2), rare]
    return made


def lmq() -> list[JavaMessages]:
    """Returns messages that are in further queues too, and some that are in none."""
    names = ("%LMQ%a", "%LMQ%a,%LMQ%b", "%LMQ%c")
    parent = JavaMessages(topic="Parent", count=30, body_bytes=400, tags="L", keys="l")
    made = []
    for number in range(9):
        further = {"INNER_MULTI_DISPATCH": names[number % 3]}
        made.append(replace(parent, queue_id=number % 2, first=30 * number, properties=further))
    return [*made, replace(parent, count=20, first=270)]


def batches() -> list[JavaMessages]:
    """Returns inner batches among messages of a topic without."""
    batch = JavaMessages(topic="Batches", inner_batch=True, body_bytes=300, tags="B", keys="b")
    made = []
    for number in range(90):
        made.append(replace(batch, queue_id=number % 2, count=1 + number % 5, first=5 * number))
        made.append(JavaMessages(topic="Plain", first=number, body_bytes=200, keys="p"))
    return made


def keyed() -> list[JavaMessages]:
    """Returns messages of a compaction topic, whose keys come again, and of another one."""
    made = []
    for number in range(8):
        kept = JavaMessages(topic="Compacted", count=30, body_bytes=250 + number, tags="T", keys="k")
        made.append(replace(kept, queue_id=number % 2))
        made.append(JavaMessages(topic="Plain", count=15, first=15 * number, body_bytes=500, keys="p"))
    return made


def delays() -> list[JavaMessages]:
    """Returns delayed messages, and transactions in each state."""
    later = JavaMessages(topic="Later", body_bytes=200)
    paid = JavaMessages(topic="Paid", body_bytes=200, keys="t")
    made = [JavaMessages(topic="Orders", count=60, body_bytes=700, keys="o")]
    for number in range(60):
        level = {"DELAY": str(1 + number % 18)}
        made.append(replace(later, queue_id=number % 2, first=number, properties=level))
        states = (TRANSACTION_PREPARED, *_STATES)
        made += [replace(paid, first=number, sys_flag=state) for state in states]
    return made


MESSAGES: Final[dict[str, Callable[[], list[JavaMessages]]]] = {
    "LMQ": lmq,
    "batches": batches,
    "compacted": keyed,
    "delays": delays,
    "shortened": functools.partial(plain, 14),
}
"""By the first word of a store's name; all others have :func:`plain`."""


def write(name: str, root: Path) -> None:
    """Writes a store, with the table of topics that a broker would have."""
    base, (kind, *_rest) = WRITTEN[name], name.split()
    write_store(base, kind, root)
    if not (root / "config" / "topics.json").exists():
        declare(root, base)


def write_store(base: Base, kind: str, root: Path) -> None:
    """Writes a store of a kind, which is the first word of its name."""
    if kind == "broker":
        with Judge(base.release) as judge, judge.broker(root, base.geometry, **base.told(root)) as broker:
            use(broker)
        return
    messages = MESSAGES.get(kind, plain)()
    is_killed = kind == "killed"
    if base.release == OLD:
        write_old(base, root, messages, is_killed=is_killed)
        if kind == "shortened":
            age(root)
            write_old(base, root, [], seconds=_RETENTION_S, **_AT_ONCE)
        return
    with Judge(base.release) as judge:
        judge.write(root, messages, base.geometry, halt=is_killed, **base.told(root))
        if kind == "compacted":
            judge.compact(root, (), base.geometry, **base.told(root))
        if kind == "shortened":
            age(root)
            with judge.broker(root, base.geometry, **_AT_ONCE):
                time.sleep(_RETENTION_S)


def declare(root: Path, base: Base) -> None:
    """Writes a table of the topics that a store has queues of."""
    queues = [*(root / "consumequeue").iterdir(), *(root / "batchconsumequeue").glob("*")]
    names = sorted({path.name for path in queues if not path.name.startswith("%LMQ%")})
    usual = {"perm": 6, "readQueueNums": 4, "writeQueueNums": 4}
    table = {name: usual | {"topicName": name, "attributes": base.topics.get(name, {})} for name in names}
    (root / "config").mkdir(exist_ok=True)
    (root / "config" / "topics.json").write_text(json.dumps({"topicConfigTable": table}))


def age(root: Path) -> None:
    """Makes the first files of a log as old as retention wants them."""
    then = time.time() - _HOURS_AGO * 3600
    for path in sorted((root / "commitlog").iterdir())[:_FILES_TAKEN]:
        os.utime(path, (then, then))


def write_old(
    base: Base,
    root: Path,
    messages: Iterable[JavaMessages],
    *,
    is_killed: bool = False,
    seconds: int = 0,
    **config: object,
) -> None:
    """Lets the store of ``OLD`` append messages, and stay open for some seconds."""
    specs = [camel_case(asdict(each)) for each in messages]
    question: dict[str, Any] = {"messages": specs, "halt": is_killed, "seconds": seconds}
    question |= target_of(root, base.geometry, base.told(root) | config)
    options = (*toolchain.QUICK, "--add-opens=java.base/java.nio=ALL-UNNAMED")
    command = toolchain.command_line(toolchain.build_old_store(), *options, main_class="seglog.old.OldStore")
    subprocess.run(command, input=json.dumps(question), text=True, check=True, capture_output=True)


def use(broker: JavaBroker) -> None:
    """Sends a broker messages of each kind, and commits offsets."""
    for number in range(150):
        send(broker, "Orders", number, KEYS=f"k{number}", TAGS="TagA")
        if number % 5 == 0:
            send(broker, "Later", number, DELAY=str(5 + number % 8))
            send(broker, "Alarm", number, TIMER_DELAY_SEC=str((1, 3_600, 7_200)[number // 5 % 3]))
        if number % 10 == 0:
            half = send(broker, "Paid", number, TRAN_MSG="true", PGROUP="pg").ext
            if number % 30:
                end(broker, half, number)
    group = json.dumps(group_to_config(SubscriptionGroup("cg"))).encode()
    assert broker.ask_code(RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, group).code == 0
    for queue_id, offset in enumerate((40, 30)):
        header = UpdateConsumerOffsetHeader("cg", "Orders", queue_id, offset)
        answer = broker.ask(Request(RequestCode.UPDATE_CONSUMER_OFFSET, header))
        assert answer.code == 0, answer
    time.sleep(8)  # until the timer has delivered what is due, and its positions are saved


def send(broker: JavaBroker, topic: str, number: int, **properties: str) -> Any:
    """Sends a message, and returns the answer."""
    told = {"UNIQ_KEY": f"{topic}{number}"} | properties
    raw = "".join(f"{name}\x01{value}\x02" for name, value in told.items()).encode()
    sys_flag = TRANSACTION_PREPARED if "TRAN_MSG" in properties else 0
    header = SendMessageHeader("pg", topic, "TBW102", 2, number % 2, sys_flag, 1_700_000_000_000, 0, raw)
    answer = broker.ask(Request(RequestCode.SEND_MESSAGE_V2, header, b"%d " % number * 60))
    assert answer.code == 0, answer
    return answer


def end(broker: JavaBroker, half: dict[str, str], number: int) -> None:
    """Commits a transaction, or rolls it back."""
    answer = broker.ask_code(
        _END_TRANSACTION,
        producerGroup="pg",
        tranStateTableOffset=half["queueOffset"],
        commitLogOffset=str(int(half["msgId"][-16:], 16)),
        commitOrRollback=str(_STATES[number // 10 % 2]),
        msgId=half["msgId"],
        transactionId=f"Paid{number}",
    )
    assert answer.code == 0, answer


def pack(folder: Path) -> None:
    """Packs all stores of a folder into the archive."""
    path = Path(__file__).resolve().parents[3] / "tools" / "pack-golden"
    loader = SourceFileLoader("pack_golden", str(path))
    spec = spec_from_loader("pack_golden", loader)
    assert spec is not None
    packer = module_from_spec(spec)
    loader.exec_module(packer)
    packer.pack(folder, list(WRITTEN), ARCHIVE)


def main() -> None:
    """Writes and packs all."""
    folder = Path(sys.argv[1])
    folder.mkdir()
    for name in WRITTEN:
        write(name, folder / name)
        print(name)
    pack(folder)


if __name__ == "__main__":
    main()
