"""What our broker answers otherwise than RocketMQ, on purpose: one row for each.

docs/differences.md is written from it, and the differential test allows nothing else: in random sequences it
meets a row that says which fields of the answer differ, and never asks for one after which the two brokers
would go apart. Each row has requests that show it, and what both answer to the last of them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from seglog.broker.broker import Broker
from seglog.remoting.client_headers import UnregisterClientHeader
from seglog.remoting.codes import RequestCode
from seglog.remoting.command import Request
from seglog.storage.format.names import DLQ_PREFIX
from seglog.storage.format.record import sys_flag as flags
from tests.interop.judging import difference_cases as cases
from tests.interop.judging.admin_differences import ADMIN_DIFFERENCES
from tests.interop.judging.alike import Essence
from tests.interop.judging.client_differences import CLIENT_DIFFERENCES
from tests.interop.judging.difference import Difference
from tests.interop.judging.difference_cases import EXPLAINED, MESSAGE_BYTES
from tests.interop.judging.requests import (
    clone,
    commit,
    consume_directly,
    delete_group,
    make_group,
    make_topic,
    may_read,
    pull,
    query,
    reset,
    send,
    send_back,
    send_batch,
)

SEND_FIELDS: Final = ("MSG_REGION", "TRACE_ON")
"""What answers to sends have, but not those that RocketMQ makes of an exception."""


def is_left_out(request: Request, broker: Broker) -> Difference | None:
    """Returns the row because of which a random sequence does not ask for something, None if none."""
    return next(
        (row for row in DIFFERENCES if row.leads_apart is not None and row.leads_apart(request, broker)), None
    )


def is_allowed(field: str, request: Request, ours: Essence, theirs: Essence) -> bool:
    """Returns whether a field of two answers differs on purpose."""
    return any(row.allows(field, request, ours, theirs) for row in DIFFERENCES)


def _remark(answer: Essence) -> str:
    remark: str = answer["remark"]
    return remark.partition(EXPLAINED)[0].strip(" ,")


def _at(name: str) -> Callable[[Essence], Any]:
    return lambda answer: answer.get(name)


DIFFERENCES: Final = (
    Difference(
        name="empty-body",
        request="send of an empty body",
        theirs="fails: NullPointerException, code 1",
        ours="is stored",
        why="nothing is wrong with it",
        shown_by=(send("empty-body", b""),),
        there=1,
        here=0,
        leads_apart=cases.is_empty_send,
    ),
    Difference(
        name="empty-body-back",
        request="message of a batch that has no body, sent back",
        theirs="is refused with 1, MESSAGE_ILLEGAL",
        ours="is tried again",
        why="nothing is wrong with it",
        shown_by=(
            send("empty-body-back"),
            send_batch("empty-body-back", b""),
            lambda place: send_back("empty-body-back", "empty-body-back", place),
        ),
        there=1,
        here=0,
        leads_apart=cases.is_sent_back_empty,
    ),
    Difference(
        name="compacted-back",
        request="message of a compaction topic, sent back",
        theirs="is looked for in the log at its place in the compacted log; nothing is found, or a stranger",
        ours="is found by its id",
        why="another message would be tried again",
        shown_by=(
            make_topic("compacted-back", attributes="+cleanup.policy=COMPACTION"),
            send("compacted-back", properties=b"KEYS\x01k\x02"),
            lambda place: send_back("compacted-back", "compacted-back", place),
        ),
        there=0,
        here=1,
        leads_apart=cases.is_sent_back_compacted,
        is_drawn=False,
    ),
    Difference(
        name="half-property",
        request="property without a name, or without a value",
        theirs="is dropped",
        ours="is kept; readers skip it",
        why="no scan of each send",
        shown_by=(send("half-property", properties=b"\x01v\x02n\x01\x02"), pull("cg", "half-property")),
        looks_at=lambda answer: b"n\x01" in answer["messages"][0]["properties"],
        there=False,
        here=True,
        leads_apart=cases.has_half_property,
    ),
    Difference(
        name="timer-in-transaction",
        request="TIMER_* in a half message or a rollback",
        theirs="is not looked at",
        ours="is refused as elsewhere",
        why="no client does it",
        shown_by=(
            send(
                "timer-in-transaction",
                properties=b"TIMER_DELAY_SEC\x015\x02",
                sys_flag=flags.TRANSACTION_PREPARED,
            ),
        ),
        there=0,
        here=1,
        leads_apart=cases.is_timer_in_transaction,
    ),
    Difference(
        name="long-dead-letter",
        request="send to a topic %DLQ%… of more than 127 characters",
        theirs="is refused with 13",
        ours="is stored",
        why="the group may have such a name, and its dead letters would be lost",
        shown_by=(send(DLQ_PREFIX + "long-dead-letter".ljust(123, "x")),),
        there=13,
        here=0,
        leads_apart=cases.is_long_dead_letter,
    ),
    Difference(
        name="no-write-queues",
        request="send to any queue of a topic without write queues",
        theirs="fails: / by zero, code 1",
        ours="is refused with 1 too, and says so",
        why="the answer says what is wrong",
        shown_by=(make_topic("no-write-queues", 4, 0), send("no-write-queues", queue_id=-1)),
        looks_at=lambda answer: answer["remark"].partition(":")[0],
        there="java.lang.ArithmeticException",
        here="topic[no-write-queues] has no queue that can be written",
        leads_apart=cases.has_no_write_queues,
    ),
    Difference(
        name="negative-queues",
        request="topic with a negative number of queues",
        theirs="is created; sends to it end anywhere or fail",
        ours="is refused with 29",
        why="no such topic can be served",
        shown_by=(make_topic("negative-queues", 4, -1),),
        there=0,
        here=29,
        leads_apart=cases.makes_negative_queues,
    ),
    Difference(
        name="lite-topic",
        request="topic or group with attributes of lite topics (`message.type=LITE`, `lite.…`)",
        theirs="is created",
        ours="is refused with 1",
        why="lite topics are not served here, and their messages would reach no consumer",
        shown_by=(make_topic("lite-topic", attributes="+message.type=LITE"),),
        there=0,
        here=1,
        leads_apart=cases.is_lite,
        since="5.5.0",
    ),
    Difference(
        name="message-types",
        request="topic with a `message.type` that there is not (1)",
        theirs="names LITE among those that there are",
        ours="does not",
        why="as the row before",
        shown_by=(make_topic("message-types", attributes="+message.type=BAD"),),
        looks_at=lambda answer: "LITE" in answer["remark"],
        there=True,
        here=False,
        fields=("remark",),
        holds=cases.is_of_message_types,
        since="5.5.0",
    ),
    Difference(
        name="blank-subscription",
        request="pull with a subscription of blanks only",
        theirs="matches nothing",
        ours="is refused with 23",
        why="a consumer that waits for nothing is an error",
        shown_by=(send("blank-subscription"), pull("cg", "blank-subscription", subscription=" || ")),
        there=20,
        here=23,
        leads_apart=cases.is_blank_subscription,
    ),
    Difference(
        name="no-expression",
        request="pull with an expression that is not valid SQL92, or in another language than tags and SQL92",
        theirs="gets all messages",
        ours="is refused with 23",
        why="the client would get what it did not ask for; with a heartbeat RocketMQ refuses it too",
        shown_by=(
            send("no-expression"),
            pull("cg", "no-expression", subscription="x", expression_type="JS"),
        ),
        there=0,
        here=23,
        leads_apart=cases.is_no_expression,
    ),
    Difference(
        name="max-msg-bytes",
        request="pull of at most so many bytes (`maxMsgBytes` above 0)",
        theirs="does not look at it",
        ours="ends there, never before the first message",
        why="it is what the client asked for",
        shown_by=(
            send("max-msg-bytes", bytes(1_000)),
            send("max-msg-bytes", bytes(1_000)),
            pull("cg", "max-msg-bytes", max_msg_bytes=1_500),
        ),
        looks_at=lambda answer: len(answer["messages"]),
        there=2,
        here=1,
        leads_apart=cases.ends_at_bytes,
    ),
    Difference(
        name="full-answer",
        request="pull by tags or SQL92 that gets as many messages as it asked for",
        theirs="goes on behind the last message",
        ours="also steps over what does not match behind it",
        why="the next pull has less to read",
        shown_by=(
            send("full-answer", properties=b"TAGS\x01A\x02"),
            send("full-answer"),
            pull("cg", "full-answer", count=0, subscription="A"),
        ),
        looks_at=_at("nextBeginOffset"),
        there="1",
        here="2",
        fields=("nextBeginOffset",),
        holds=cases.is_full,
    ),
    Difference(
        name="commit-after-reset",
        request="commit in a pull that is answered with a reset",
        theirs="is done",
        ours="is ignored",
        why="it is older than the reset",
        shown_by=(
            make_group("commit-after-reset"),
            *(send("commit-after-reset") for _ in range(3)),
            reset("commit-after-reset", "commit-after-reset", 1),
            pull("commit-after-reset", "commit-after-reset", commit_offset=2),
            query("commit-after-reset", "commit-after-reset"),
        ),
        looks_at=_at("offset"),
        there="2",
        here="1",
        leads_apart=cases.commits_after_reset,
    ),
    Difference(
        name="reset-beyond",
        request="reset to one message beyond the end",
        theirs="is done",
        ours="goes to the end",
        why="the group would miss a message",
        shown_by=(
            make_group("reset-beyond"),
            send("reset-beyond"),
            reset("reset-beyond", "reset-beyond", 2),
            query("reset-beyond", "reset-beyond"),
        ),
        looks_at=_at("offset"),
        there="2",
        here="1",
        leads_apart=cases.is_reset_beyond,
    ),
    Difference(
        name="negative-commit",
        request="commit of a negative offset, by itself or in a pull, all of which is refused then",
        theirs="is done, and read as no commit",
        ours="is refused with 29",
        why="it is a mistake, and would move the group",
        shown_by=(
            make_group("negative-commit"),
            send("negative-commit"),
            commit("negative-commit", "negative-commit", -1),
        ),
        there=0,
        here=29,
        leads_apart=cases.commits_negative,
    ),
    Difference(
        name="leaving-unknown-group",
        request="client that leaves a group that is not there",
        theirs="creates the group",
        ours="does nothing",
        why="RocketMQ's slip",
        shown_by=(
            send("leaving-unknown-group"),
            Request(
                RequestCode.UNREGISTER_CLIENT, UnregisterClientHeader("c", None, "leaving-unknown-group")
            ),
            commit("leaving-unknown-group", "leaving-unknown-group", 0),
        ),
        there=0,
        here=26,
        leads_apart=cases.leaves_unknown_group,
    ),
    Difference(
        name="direct-unknown-group",
        request="message to be consumed by a client of a group that is not there",
        theirs="creates the group",
        ours="does nothing",
        why="RocketMQ's slip",
        shown_by=(
            send("direct-unknown-group"),
            consume_directly("direct-unknown-group"),
            commit("direct-unknown-group", "direct-unknown-group", 0),
        ),
        there=0,
        here=26,
        leads_apart=cases.is_for_unknown_group,
        is_drawn=False,
    ),
    Difference(
        name="clone-of-all",
        request="clone of a group's offsets in all topics",
        theirs="clones nothing",
        ours="clones all",
        why="RocketMQ's slip",
        shown_by=(
            make_group("clone-of-all"),
            make_group("clone-of-all-to"),
            send("clone-of-all"),
            commit("clone-of-all", "clone-of-all", 1),
            clone("clone-of-all", "clone-of-all-to", None),
            query("clone-of-all-to", "clone-of-all"),
        ),
        there=22,
        here=0,
        leads_apart=cases.clones_all,
    ),
    Difference(
        name="permitted-topic",
        request="permission for a group to read one topic, where it is kept from others",
        theirs="permits those too",
        ours="keeps it from those",
        why="RocketMQ's slip",
        shown_by=(
            make_group("permitted-topic"),
            may_read("permitted-topic", "one", False),
            may_read("permitted-topic", "other", True),
            may_read("permitted-topic", "one"),
        ),
        looks_at=lambda answer: answer["body"]["readable"],
        there=True,
        here=False,
        leads_apart=cases.permits_one_of_several,
    ),
    Difference(
        name="system-group",
        request="deletion of a group of the system",
        theirs="is done",
        ours="is refused with 29",
        why="its tools would be refused",
        shown_by=(delete_group("FILTERSRV_CONSUMER"),),
        there=0,
        here=29,
        leads_apart=cases.deletes_system_group,
    ),
    Difference(
        name="long-batch",
        request="batch that is longer than a message may be",
        theirs="fails: RuntimeException, code 1",
        ours="is refused with 13",
        why="as a message that is too long",
        shown_by=(send("long-batch"), send_batch("long-batch", *[bytes(MESSAGE_BYTES // 2)] * 3)),
        there=1,
        here=13,
        fields=("code", "remark", *SEND_FIELDS),
        holds=cases.is_long_batch,
    ),
    Difference(
        name="no-batch",
        request="batch of no messages",
        theirs="fails: NullPointerException, code 1",
        ours="is refused with 29",
        why="the answer says what is wrong",
        shown_by=(send("no-batch"), send_batch("no-batch")),
        there=1,
        here=29,
        leads_apart=cases.is_empty_batch,
    ),
    Difference(
        name="too-long",
        request="send of a message that is too long (13)",
        theirs="has one sentence for all",
        ours="says what is too long, and how long it may be",
        why="the answer says what is wrong",
        shown_by=(send("too-long", bytes(MESSAGE_BYTES + 1)),),
        looks_at=lambda answer: _remark(answer).partition(",")[0],
        there="the message is illegal",
        here="the body has 65537 bytes",
        fields=("remark",),
        holds=cases.is_refused_as_illegal,
    ),
    Difference(
        name="no-delay-level",
        request="send with a DELAY that is no number (1)",
        theirs="answers with the exception of Java and its place",
        ours="names the property",
        why="the answer says what is wrong",
        shown_by=(send("no-delay-level", properties=b"DELAY\x01x\x02"),),
        looks_at=lambda answer: _remark(answer).partition(":")[0],
        there="java.lang.NumberFormatException",
        here="the property DELAY holds no number",
        fields=("remark", *SEND_FIELDS),
        holds=cases.is_no_delay_level,
    ),
    Difference(
        name="group-attribute",
        request="group with attributes that cannot be (1)",
        theirs="answers with the exception of Java and its place",
        ours="says the same without those",
        why="the answer says what is wrong",
        shown_by=(make_group("group-attribute", {"+priority.factor": "101"}),),
        looks_at=lambda answer: _remark(answer).partition(": ")[0],
        there="java.lang.RuntimeException",
        here="value is not in range(0, 100)",
        fields=("remark",),
        holds=cases.is_group_attribute,
    ),
    Difference(
        name="queue-not-there",
        request="pull of a queue that is not there (29)",
        theirs="names the client's address",
        ours="names the group",
        why="the address says less",
        shown_by=(send("queue-not-there"), pull("cg", "queue-not-there", queue_id=9)),
        looks_at=lambda answer: _remark(answer).rpartition(":")[2],
        there="[]",  # without the address
        here="[cg]",
        fields=("remark",),
        holds=cases.is_queue_not_there,
    ),
    Difference(
        name="explained",
        request="pull of a topic or group that is not there (17, 26)",
        theirs="adds the address of a page that explains it",
        ours="does not",
        why="the page is RocketMQ's",
        shown_by=(pull("cg", "explained"),),
        looks_at=lambda answer: EXPLAINED in answer["remark"],
        there=True,
        here=False,
        fields=("remark",),
        holds=cases.is_explained,
    ),
    Difference(
        name="durability",
        request="send that is stored",
        theirs="does not say what it waited for",
        ours="has the field `seglogDurability`",
        why="a client can see whether the message is on the disk",
        shown_by=(send("durability"),),
        looks_at=_at("seglogDurability"),
        there=None,
        here="async",
        fields=("seglogDurability",),
        holds=cases.is_durability,
    ),
    *CLIENT_DIFFERENCES,
    *ADMIN_DIFFERENCES,
)
