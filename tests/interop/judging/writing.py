"""Writes stores for the judge: in a process that ends as a test wants, or here, as the judge would write."""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from seglog import MessageStore
from seglog.storage.format.index.index import IndexGeometry
from seglog.storage.format.record.host import Host
from seglog.storage.format.record.properties import encode_properties
from seglog.storage.format.record.tags import tags_code
from seglog.storage.writes.values import BatchResult, PutResult, RawMessage
from tests.interop.judging.lines import inner_batch_body, properties_of, stored_body, sys_flag_of
from tests.interop.judging.questions import (
    DEFAULT_GEOMETRY,
    SMALL_GEOMETRY,
    Geometry,
    JavaHost,
    JavaMessages,
    Line,
)
from tests.support.machine.children import child
from tests.support.machine.patience import wait_for_end

ROOT = Path(__file__).parents[3]
LIMIT_S = 60


@dataclass(frozen=True)
class Written:
    """What a writer process had acknowledged when it ended.

    Attributes:
        queued: What must be served, in the order of writing.
        logged: Records of the log that no queue holds.
        max_phy_offset: End of the log at the ``ready`` line.
    """

    queued: list[Line]
    logged: list[Line]
    max_phy_offset: int


def store_options(geometry: Geometry) -> dict[str, Any]:
    """Returns the options of ``MessageStore.open`` for a geometry; RocketMQ's sizes are the defaults."""
    if geometry == DEFAULT_GEOMETRY:
        return {}
    return {
        "segment_size_bytes": geometry.segment_size_bytes,
        "queue_file_size_bytes": geometry.queue_file_size_bytes,
        "index_geometry": IndexGeometry(geometry.index_slots, geometry.index_entries),
    }


def append_here(store: MessageStore, messages: JavaMessages) -> list[Line]:
    """Appends what ``judge.append`` would, and answers in the same words."""
    numbers = range(messages.first, messages.first + messages.count)
    code = tags_code(messages.tags)
    if messages.batch:
        batch = [
            RawMessage(
                messages.body(number), encode_properties(properties_of(messages, number)), code, messages.flag
            )
            for number in numbers
        ]
        together = store.append_batch(
            messages.topic,
            messages.queue_id,
            batch,
            sys_flag=messages.sys_flag,
            born_timestamp_ms=messages.born_timestamp,
            born_host=_host(messages.born_host),
            reconsume_times=messages.reconsume_times,
        )
        return [_answer(messages, messages.first, together)]
    return [
        _answer(
            messages,
            number,
            store.append(
                messages.topic,
                messages.queue_id,
                inner_batch_body(messages) if messages.inner_batch else stored_body(messages, number),
                encode_properties(properties_of(messages, number)),
                code,
                sys_flag=sys_flag_of(messages),
                flag=messages.flag,
                born_timestamp_ms=messages.born_timestamp,
                born_host=_host(messages.born_host),
                store_host=_host(messages.store_host),
                reconsume_times=messages.reconsume_times,
                prepared_transaction_offset=messages.prepared_transaction_offset,
            ),
        )
        for number in (numbers[:1] if messages.inner_batch else numbers)
    ]


def _answer(messages: JavaMessages, number: int, result: PutResult | BatchResult) -> Line:
    ids = result.message_ids if isinstance(result, BatchResult) else [result.message_id]
    is_batch = isinstance(result, BatchResult)
    return {
        "number": number,
        "status": "PUT_OK",
        "queueOffset": result.queue_offset,
        "count": messages.count if is_batch or messages.inner_batch else 1,
        "phyOffset": result.phy_offset,
        "storeTimestamp": result.store_timestamp_ms,
        "messageId": ",".join(ids),
    }


def _host(java_host: JavaHost) -> Host:
    address = f"[{java_host.address}]" if ":" in java_host.address else java_host.address
    return Host.parse(f"{address}:{java_host.port}")


def write_store(
    path: Path,
    geometry: Geometry = SMALL_GEOMETRY,
    *,
    killed: bool = False,
    killed_after: int = 0,
    record_crc: bool | None = None,
) -> Written:
    """Lets a process of its own write a store of every kind of record.

    Args:
        path: Where.
        geometry: File sizes.
        killed: End it with SIGKILL while it waits, instead of cleanly.
        killed_after: End it with SIGKILL in the middle of writing, after so many further messages.
        record_crc: As in ``MessageStore.open``.
    """
    options = {"geometry": asdict(geometry), "record_crc": record_crc, "endless": killed_after > 0}
    command = [sys.executable, "-m", "tests.interop.judging.writer", str(path), json.dumps(options)]
    with child(
        command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8"
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        lines = [*_until_ready(process.stdout)]
        lines += [json.loads(text) for text in itertools.islice(process.stdout, killed_after)]
        if killed or killed_after:
            process.kill()
        process.stdin.close()
        # What it acknowledged before the signal reached it counts; a line that the signal cut does not.
        lines += [json.loads(text) for text in process.stdout if text.endswith("\n")]
        wait_for_end(process, idle_s=LIMIT_S)
    assert process.returncode == (-9 if killed or killed_after else 0)
    (ready,) = (line for line in lines if line["kind"] == "ready")
    return Written(
        queued=[line for line in lines if line["kind"] == "queued"],
        logged=[line for line in lines if line["kind"] == "logged"],
        max_phy_offset=ready["maxPhyOffset"],
    )


def _until_ready(stdout: Iterable[str]) -> Iterator[Line]:
    for text in stdout:
        line: Line = json.loads(text)
        yield line
        if line["kind"] == "ready":
            return
    raise AssertionError("the writer ended early; what it said is above")
