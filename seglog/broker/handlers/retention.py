"""DELETE_EXPIRED_COMMITLOG, CLEAN_EXPIRED_CONSUMEQUEUE and CLEAN_UNUSED_TOPIC.

Source: ``AdminBrokerProcessor.java deleteExpiredCommitLog, cleanExpiredConsumeQueue, cleanUnusedTopic``.
"""

from __future__ import annotations

from typing import Final

from seglog.broker.access import Action
from seglog.broker.handlers.handler import Call, Handler
from seglog.broker.handlers.touching import of_cluster
from seglog.broker.state.state import BrokerState
from seglog.broker.tables.topics import is_system_topic
from seglog.remoting.codes import RequestCode, ResponseCode
from seglog.remoting.command import Header, Response
from seglog.storage.format.names import LMQ_PREFIX


def delete_expired_log(state: BrokerState, _call: Call[Header]) -> Response:
    """Has files of the log deleted that are old enough, at any hour; what a group needs is guarded."""
    state.retention.request()
    return Response(ResponseCode.SUCCESS)


def clean_expired_queues(state: BrokerState, _call: Call[Header]) -> Response:
    """Deletes files of queues whose messages the log has lost.

    RocketMQ drops queues that have lost all messages, and they begin at 0 again; here they keep the file of
    their last message, and with it the next offset: groups that have committed would miss messages otherwise.
    """
    state.store.retention.delete_before(max(0, state.store.min_phy_offset))
    return Response(ResponseCode.SUCCESS)


def clean_unused_topics(state: BrokerState, _call: Call[Header]) -> Response:
    """Deletes the queues of topics that are not in the table."""
    for topic in state.store.topics():
        is_kept = state.topics.get(topic) is not None or is_system_topic(topic, state.config)
        if not is_kept and not topic.startswith(LMQ_PREFIX):
            state.store.retention.delete_topic(topic)
            state.figures.forget_topic(topic)
    return Response(ResponseCode.SUCCESS)


_RULES: Final = (of_cluster(Action.UPDATE),)
HANDLERS: Final = (
    Handler(RequestCode.DELETE_EXPIRED_COMMITLOG, Header, delete_expired_log, _RULES),
    Handler(RequestCode.CLEAN_EXPIRED_CONSUMEQUEUE, Header, clean_expired_queues, _RULES),
    Handler(RequestCode.CLEAN_UNUSED_TOPIC, Header, clean_unused_topics, _RULES),
)
