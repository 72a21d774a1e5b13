"""Small brokers for tests, on a clock that only tests move, and without threads of their own."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from seglog.broker.access import Before
from seglog.broker.broker import Broker
from seglog.broker.settings.config import BrokerConfig
from seglog.clock import Clock, VirtualClock
from seglog.remoting.bodies import MessageBatch, RecordsBody
from seglog.remoting.codes import PullFlag, RequestCode
from seglog.remoting.command import NO_HEADER, Body, Header, Request, Response, expect_body, expect_header
from seglog.remoting.headers import (
    PullMessageHeader,
    PullMessageResponseHeader,
    SendBackHeader,
    SendMessageHeader,
    SendMessageResponseHeader,
)
from seglog.storage.format.record.properties import encode_properties
from seglog.testing import RoomyFiles

SEGMENT_BYTES = 1 << 20
QUEUE_FILE_BYTES = 20 * 1000


def open_broker(
    path: Path,
    clock: Clock | None = None,
    config: BrokerConfig | None = None,
    before: Before | None = None,
) -> Broker:
    """Opens a broker over a store of small files."""
    return Broker.open(
        path,
        clock=clock or VirtualClock(),
        config=on_a_roomy_disk(config or BrokerConfig()),
        background=False,
        before=before,
        segment_size_bytes=SEGMENT_BYTES,
        queue_file_size_bytes=QUEUE_FILE_BYTES,
        files=RoomyFiles(path),
    )


def on_a_roomy_disk(config: BrokerConfig) -> BrokerConfig:
    """Returns settings under which it does not matter how full this machine's disk is."""
    return replace(config, disk_clean_percent=100, disk_force_percent=100, disk_refuse_percent=100)


def ask(broker: Broker, code: int, header: Header = NO_HEADER, body: Body = None) -> Any:
    """Returns a broker's answer; of what type its header and body are, the code says."""
    return broker.dispatch(Request(code, header, body))


def send(
    broker: Broker,
    topic: str,
    body: bytes | MessageBatch = b"x",
    *,
    queue_id: int = 0,
    properties: bytes = b"",
    default_topic: str = "TBW102",
    code: RequestCode = RequestCode.SEND_MESSAGE_V2,
) -> Response:
    """Sends as a producer does that has a queue in mind."""
    header = SendMessageHeader("pg", topic, default_topic, 4, queue_id, 0, 1_234, 0, properties)
    return broker.dispatch(Request(code, header, body))


def send_delayed(
    broker: Broker,
    level: int | str,
    body: bytes = b"x",
    *,
    topic: str = "T",
    queue_id: int = 0,
    **properties: str,
) -> Response:
    """Sends a message that waits."""
    raw = encode_properties({"DELAY": str(level), **properties})
    return send(broker, topic, body, queue_id=queue_id, properties=raw)


def send_back(
    broker: Broker,
    phy_offset: int,
    delay_level: int = 0,
    *,
    group: str = "cg",
    origin_topic: str | None = None,
    origin_message_id: str | None = None,
    max_reconsume_times: int | None = None,
    is_unit_mode: bool = False,
) -> Response:
    """Sends a message back as a consumer does that failed at it."""
    header = SendBackHeader(
        phy_offset, group, delay_level, origin_message_id, origin_topic, is_unit_mode, max_reconsume_times
    )
    return broker.dispatch(Request(RequestCode.CONSUMER_SEND_MSG_BACK, header))


def pull(
    broker: Broker,
    topic: str,
    queue_offset: int = 0,
    *,
    queue_id: int = 0,
    flags: PullFlag = PullFlag.SUBSCRIPTION,
    subscription: str = "*",
    commit_offset: int = 0,
    suspend_timeout_ms: int = 0,
    max_msg_nums: int = 32,
    expression_type: str | None = None,
) -> Response:
    """Pulls as a consumer of group ``cg`` does."""
    header = PullMessageHeader(
        "cg",
        topic,
        queue_id,
        queue_offset,
        max_msg_nums,
        int(flags),
        commit_offset,
        suspend_timeout_ms,
        0,
        subscription,
        expression_type,
    )
    return broker.dispatch(Request(RequestCode.PULL_MESSAGE, header))


def send_header(answer: Response) -> SendMessageResponseHeader:
    """Returns the header of the answer to a send."""
    return expect_header(answer, SendMessageResponseHeader)


def pull_header(answer: Response) -> PullMessageResponseHeader:
    """Returns the header of the answer to a pull of any status."""
    return expect_header(answer, PullMessageResponseHeader)


def records_body(answer: Response) -> RecordsBody:
    """Returns the records that a pull found."""
    return expect_body(answer, RecordsBody)
