"""UPDATE_BROKER_CONFIG, GET_BROKER_CONFIG and those of the name server: settings by RocketMQ's names.

A change holds until the broker closes; RocketMQ writes it to its file. A setting without effect here is
logged and answered with success, because scripts set it for RocketMQ. Paths cannot be changed: otherwise a
client could choose where files are written.

Differences: RocketMQ changes paths that are not in its black list, and ignores an invalid value; here an
invalid value is refused with 29, and nothing is changed. RocketMQ reads a body of any length.

Source: ``AdminBrokerProcessor.java updateBrokerConfig, getBrokerConfig``, ``Configuration.java``,
``DefaultRequestProcessor.java updateConfig, getConfig`` of the name server.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from typing import Final

from seglog.broker.access import Action
from seglog.broker.handlers.handler import Call, Handler
from seglog.broker.handlers.touching import of_cluster
from seglog.broker.settings import java_keys
from seglog.broker.state.state import BrokerState
from seglog.broker.tables import DataVersion
from seglog.broker.tables.name_server import KEY_VALUE_FILE
from seglog.errors import CorruptError
from seglog.logs import logger
from seglog.remoting.admin_headers import ConfigVersionResponseHeader
from seglog.remoting.codes import MASTER_ID, RequestCode, ResponseCode
from seglog.remoting.command import Header, Request, Response, refuse
from seglog.storage.format.config import java_properties_text, parse_java_properties
from seglog.storage.format.names import COMMIT_LOG
from seglog.storage.writes import Durability
from seglog.text import printable

_log = logger(__name__)
_MOST_SHOWN: Final = 1_000
_MOST_NOTED: Final = 1_000
"""Most names of settings without effect that are remembered as logged."""
MOST_BYTES: Final = 1 << 20
"""Longest body of a change, read by the thread that serves all; RocketMQ's configuration has some 20 KiB."""


def update_broker(state: BrokerState, call: Call[Header]) -> Response:
    """Changes settings of the broker that can be changed while it runs."""
    values = _named(call.request, java_keys.REFUSED)
    if isinstance(values, Response):
        return values
    settings = state.settings
    lent = java_keys.read_lent(values, settings.lent)
    settings.change(java_keys.read_changes(values), lent)
    used = java_keys.CHANGEABLE.keys() | lent.keys()
    changed = [f"{name}={values[name]}" for name in sorted(values) if name in used]
    if changed:
        _log.info("%s sets %s", call.peer.host, _listed(changed))
    _tell_of_unused(state, call, [name for name in values if name not in used], "here")
    return Response(ResponseCode.SUCCESS)


def get_broker(state: BrokerState, _call: Call[Header]) -> Response:
    """Returns the settings of the broker, and which state of them it is."""
    settings, store = state.settings, state.store
    values = java_keys.shown(settings.now) | {
        **{name: str(value) for name, value in settings.lent.items()},
        "brokerId": str(MASTER_ID),
        "brokerRole": "ASYNC_MASTER",
        "flushDiskType": "SYNC_FLUSH" if store.durability is Durability.SYNC else "ASYNC_FLUSH",
        "mappedFileSizeCommitLog": str(store.geometry.segment_size_bytes),
        "storePathCommitLog": str(store.path / COMMIT_LOG),
        "storePathRootDir": str(store.path),
    }
    version = DataVersion(settings.changes, 0, settings.changed_ms).to_config()
    return Response(
        ResponseCode.SUCCESS,
        ConfigVersionResponseHeader(json.dumps(version, separators=(",", ":"))),
        java_properties_text(values).encode("utf-8", "replace"),
    )


def update_name_server(state: BrokerState, call: Call[Header]) -> Response:
    """Changes nothing: the name server has no settings of its own."""
    values = _named(call.request, java_keys.REFUSED_OF_NAME_SERVER)
    if isinstance(values, Response):
        return values
    _tell_of_unused(state, call, values, "in the name server")
    return Response(ResponseCode.SUCCESS)


def get_name_server(state: BrokerState, _call: Call[Header]) -> Response:
    """Returns what is settled of the name server."""
    values = {
        "clusterTest": "false",
        "deleteTopicWithBrokerRegistration": "false",
        "enableAllTopicList": "true",
        "enableTopicList": "true",
        "kvConfigPath": str(state.store.path / KEY_VALUE_FILE),
        "listenPort": state.config.address.rpartition(":")[2],
        "orderMessageEnable": "false",
        "supportActingMaster": "false",
    }
    return Response(ResponseCode.SUCCESS, body=java_properties_text(values).encode("utf-8", "replace"))


def _tell_of_unused(state: BrokerState, call: Call[Header], names: Collection[str], where: str) -> None:
    """Logs settings that change nothing, each once in the life of a broker, up to a number of them."""
    told = state.settings.told_unused
    new = sorted({(where, name) for name in names} - told)
    if new and len(told) < _MOST_NOTED:
        told.update(new[:_MOST_NOTED])
        shown = _listed([name for _, name in new])
        _log.info("%s sets what changes nothing %s: %s", call.peer.host, where, shown)


def _listed(names: Sequence[str]) -> str:
    """Returns names that a client sent, shortened for one line of the log."""
    text = printable(", ".join(names))
    return text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}... ({len(names)} in all)"


def _named(request: Request, refused: frozenset[str]) -> dict[str, str] | Response:
    """Returns the settings that a request names, or why it is refused."""
    body = request.body if isinstance(request.body, bytes | memoryview) else b""
    if len(body) > MOST_BYTES:
        remark = f"a body of settings has {len(body)} bytes, at most {MOST_BYTES}"
        return refuse(ResponseCode.SYSTEM_ERROR, remark)
    try:
        values = parse_java_properties(bytes(body))
    except CorruptError:
        return refuse(ResponseCode.SYSTEM_ERROR, "string2Properties error")
    if any(java_keys.is_refused(name, refused) for name in values):
        return refuse(ResponseCode.NO_PERMISSION, "Can not update config in black list.")
    return values


_READS: Final = (of_cluster(Action.GET),)
_CHANGES: Final = (of_cluster(Action.UPDATE),)
HANDLERS: Final = (
    Handler(RequestCode.UPDATE_BROKER_CONFIG, Header, update_broker, _CHANGES),
    Handler(RequestCode.GET_BROKER_CONFIG, Header, get_broker, _READS),
    Handler(RequestCode.UPDATE_NAMESRV_CONFIG, Header, update_name_server, _CHANGES),
    Handler(RequestCode.GET_NAMESRV_CONFIG, Header, get_name_server, _READS),
)
