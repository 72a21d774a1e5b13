"""What our broker answers otherwise than RocketMQ about clients, and to them: rows of ``differences.py``."""

from __future__ import annotations

from typing import Final

from tests.interop.judging import difference_cases as cases
from tests.interop.judging.difference import Difference
from tests.interop.judging.difference_cases import NO_SQL
from tests.interop.judging.requests import (
    ask_state,
    begin,
    check_condition,
    commit,
    consume_directly,
    join,
    make_group,
    make_topic,
    pull,
    send,
    set_pop,
)

CLIENT_DIFFERENCES: Final = (
    Difference(
        name="no-condition",
        request="subscription by what is not valid SQL92, before a client begins (23)",
        theirs="answers with the exception of its parser",
        ours="says what is wrong with the expression",
        why="the answer says what is wrong",
        shown_by=(check_condition("no-condition", NO_SQL),),
        looks_at=lambda answer: answer["remark"].partition(":")[0],
        there="org.apache.rocketmq.filter.parser.ParseException",
        here=f"unexpected end of the SQL92 expression '{NO_SQL}'",
        fields=("remark",),
        holds=cases.is_no_condition,
    ),
    Difference(
        name="not-to-be-asked",
        request="state of a group that is offline (223), or consumption of a message that is not there (309)",
        theirs="fails: NullPointerException, code 1",
        ours="says what is not there",
        why="the answer says what is wrong",
        shown_by=(make_group("not-to-be-asked"), consume_directly("not-to-be-asked"), ask_state("offline")),
        looks_at=lambda answer: answer["remark"].partition(":")[0],
        there="java.lang.NullPointerException",
        here="No Any Consumer online in the consumer group",
        fields=("remark",),
        holds=cases.is_not_to_be_asked,
    ),
    Difference(
        name="pop-mode",
        request="group that is set to consume a topic by POP (SET_MESSAGE_REQUEST_MODE)",
        theirs="is set to it",
        ours="is refused with 3; where a file says so, it is told to pull",
        why="POP is not served here, and its members would get nothing",
        shown_by=(make_topic("pop-mode"), make_group("pop-mode"), set_pop("pop-mode", "pop-mode")),
        there=0,
        here=3,
        leads_apart=cases.sets_pop,
        is_drawn=False,
    ),
    Difference(
        name="given-crc",
        request="message with a property `__CRC32#` of its producer",
        theirs="keeps it, unless `enabledAppendPropCRC` is set",
        ours="drops it, and gives the record its own",
        why="it is the name of the record's check, which would fail",
        shown_by=(send("given-crc", properties=b"__CRC32#\x01123\x02"), pull("cg", "given-crc")),
        looks_at=lambda answer: b"__CRC32#\x01123" in answer["messages"][0]["properties"],
        there=True,
        here=False,
        leads_apart=cases.has_record_crc,
        is_drawn=False,
    ),
    Difference(
        name="empty-type",
        request="pull with an expression in a language whose name is empty (`expressionType`)",
        theirs="matches nothing, unless it is `*`",
        ours="is by tags",
        why="one that is not named is tags, too",
        shown_by=(
            send("empty-type", properties=b"TAGS\x01a\x02"),
            pull("cg", "empty-type", subscription="a", expression_type=""),
        ),
        there=20,
        here=0,
        leads_apart=cases.has_empty_type,
        is_drawn=False,
    ),
    Difference(
        name="lost-queue",
        request="commit with the field `seglogOwner`, a member that another has followed in the queue",
        theirs="does not read the field, and commits",
        ours="is refused with 604, ILLEGAL_OPERATION; clients that send no such field are not",
        why="it would move the group over what the new member has done, or does now",
        shown_by=(
            make_topic("lost-queue"),
            make_group("lost-queue"),
            send("lost-queue"),
            join("lost-queue", "lost-queue", "second"),
            begin("lost-queue", "lost-queue"),
            commit("lost-queue", "lost-queue", 1, owner="first"),
        ),
        there=0,
        here=604,
        leads_apart=cases.commits_for_member,
        is_drawn=False,
    ),
)
