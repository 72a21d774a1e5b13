"""Each list of system names answers one question; a name is in those lists whose question it answers."""

from __future__ import annotations

from seglog.broker.settings.config import BrokerConfig
from seglog.broker.tables.topics import is_system_topic
from seglog.storage.format.system_names import (
    NOT_ALLOWED_TO_SEND,
    is_business_topic,
    is_system_group,
    is_transit_topic,
    needs_no_registration,
)
from tests.support.rows import every_row

CONFIG = BrokerConfig(cluster_name="C", broker_name="b")
# name: (system topic, refused to producers, messages pass through, producers send to it), y or -
TOPICS = {
    "SCHEDULE_TOPIC_XXXX": "yyy-",
    "RMQ_SYS_TRANS_HALF_TOPIC": "yyy-",
    "RMQ_SYS_TRANS_OP_HALF_TOPIC": "yyy-",
    "rmq_sys_wheel_timer": "y-y-",
    "rmq_sys_REVIVE_LOG_C": "y-y-",
    "rmq_sys_SYNC_BROKER_MEMBER_b": "y-y-",
    "TRANS_CHECK_MAX_TIME_TOPIC": "yy--",
    "SELF_TEST_TOPIC": "yy--",
    "OFFSET_MOVED_EVENT": "yy--",
    "RMQ_SYS_TRACE_TOPIC": "y---",
    "C_REPLY_TOPIC": "y---",
    "TBW102": "y--y",
    "BenchmarkTest": "y--y",
    "CHECKPOINT_TOPIC": "y--y",
    "C": "y--y",
    "b": "y--y",
    "%RETRY%g": "----",
    "%DLQ%g": "----",
    "%LMQ%q": "----",
    "%PARK%g": "----",
    "T": "---y",
}


def test_a_topic_is_in_the_lists_whose_question_it_answers():
    with every_row() as row:
        for topic, wanted in TOPICS.items():
            with row(topic, wanted):
                answers = (
                    is_system_topic(topic, CONFIG),
                    topic in NOT_ALLOWED_TO_SEND,
                    is_transit_topic(topic),
                    is_business_topic(topic),
                )
                assert "".join("y" if answer else "-" for answer in answers) == wanted


GROUPS = (
    ("TOOLS_CONSUMER", True, True),
    ("FILTERSRV_CONSUMER", True, True),
    ("SELF_TEST_C_GROUP", True, True),
    ("CID_ONS-HTTP-PROXY", True, True),
    ("CID_ONSAPI_PULL", True, True),
    ("CID_ONSAPI_PERMISSION", True, True),
    ("CID_ONSAPI_OWNER", True, True),
    ("CID_RMQ_SYS_TRANS", True, True),
    ("CID_RMQ_SYS_other", True, True),
    ("SCHEDULE_CONSUMER", False, True),
    ("DEFAULT_CONSUMER", False, True),
    ("__MONITOR_CONSUMER", False, True),
    ("CID_JODIE", False, False),
    ("g", False, False),
)


def test_a_group_of_the_system_needs_no_entry_and_some_others_need_none_either():
    with every_row() as row:
        for group, is_system, may_consume in GROUPS:
            with row(group, is_system, may_consume):
                assert (is_system_group(group), needs_no_registration(group)) == (is_system, may_consume)
