"""``seglog clients``: the clients that are connected to the brokers of a cluster, and their subscriptions."""

from __future__ import annotations

from contextlib import closing

import click

from seglog.cli.admin.asking import Brokers, Unreachable
from seglog.cli.ui import options, render
from seglog.errors import RemoteProtocolError, SeglogError
from seglog.remoting.client_headers import ConsumerGroupHeader
from seglog.remoting.codes import RequestCode, ResponseCode
from seglog.remoting.heartbeat import ConsumerConnectionsBody, ProducersBody
from seglog.remoting.versions import version_name

_COLUMNS = ("group", "role", "client", "address", "language", "version", "its group subscribes to")


@click.command
@options.address
@options.as_json
def command(*, address: str, as_json: bool) -> None:
    """Show the producers and consumers that are connected to the brokers at ADDRESS.

    ADDRESS is a name server, or a broker of `seglog serve`, as host:port. Consumers are shown with what
    their group subscribes to, as the member has said that was heard last. Where a broker does not answer,
    the clients of the others are shown, and the command ends with its error.
    """
    listing = render.Listing(_COLUMNS, none="no clients", as_json=as_json)
    with closing(Brokers(address)) as brokers:
        silent: list[Unreachable] = []
        for broker, where in brokers.masters().items():
            try:
                _list_producers(listing, brokers, broker, where)
                for group in brokers.groups(where):
                    _list_consumers(listing, brokers, broker, where, group)
            except SeglogError as error:
                silent.append(Unreachable(broker, where, error))
    listing.end()
    for one in silent:
        if as_json:
            render.emit(one.as_json())
        else:
            render.say(one.line)
    if silent:
        raise silent[0].error


def _list_producers(listing: render.Listing, brokers: Brokers, broker: str, where: str) -> None:
    found = brokers.ask(where, RequestCode.GET_ALL_PRODUCER_INFO, ProducersBody)
    for group, producers in sorted(found.groups.items()):
        for one in sorted(producers, key=lambda producer: producer.client_id):
            fields = {
                "kind": "producer",
                "broker": broker,
                "group": group,
                "client": one.client_id,
                "address": one.address.lstrip("/"),
                "language": one.language,
                "version": version_name(one.version),
                "heardMs": one.heard_ms,
            }
            cells = one.client_id, one.address.lstrip("/"), one.language, version_name(one.version), None
            listing.add(fields, group, "producer", *cells)


def _list_consumers(listing: render.Listing, brokers: Brokers, broker: str, where: str, group: str) -> None:
    header = ConsumerGroupHeader(group)
    try:
        code = RequestCode.GET_CONSUMER_CONNECTION_LIST
        found = brokers.ask(where, code, ConsumerConnectionsBody, header)
    except RemoteProtocolError as error:
        if error.code == ResponseCode.CONSUMER_NOT_ONLINE:
            return
        raise
    wanted = {topic: one.expression for topic, one in sorted(found.subscriptions.items())}
    shown = ", ".join(topic if text == "*" else f"{topic} {text}" for topic, text in wanted.items())
    for one in sorted(found.connections, key=lambda connection: connection.client_id):
        fields = {
            "kind": "consumer",
            "broker": broker,
            "group": group,
            "client": one.client_id,
            "address": one.address,
            "language": one.language,
            "version": version_name(one.version),
            "consumeType": found.consume_type.value,
            "messageModel": found.message_model.value,
            "subscriptions": wanted,
        }
        listing.add(
            fields,
            group,
            "consumer",
            one.client_id,
            one.address,
            one.language,
            version_name(one.version),
            shown,
        )
