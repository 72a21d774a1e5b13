"""Sends requests to the brokers of a cluster, of seglog or RocketMQ, for the command line."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Final, TypeVar

from typing_extensions import override

from seglog.client.connect import make_client
from seglog.closing import Closing
from seglog.errors import RemoteProtocolError, SeglogError
from seglog.logs import logger
from seglog.remoting.admin_bodies import ClusterBody, ConfigBody
from seglog.remoting.codes import MASTER_ID, RequestCode, ResponseCode
from seglog.remoting.command import NO_HEADER, Header, Request, TypedBody, expect_body

TIMEOUT_MS: Final = 5_000
_SILENT: Final = logging.NullHandler()
Wanted = TypeVar("Wanted", bound=TypedBody)


@dataclass(frozen=True, slots=True)
class Unreachable:
    """A broker that a name server lists, and that gives no valid answer.

    Attributes:
        broker: Its name.
        address: Its address in the name server's list.
        error: The error of the request.
    """

    broker: str
    address: str
    error: SeglogError

    @property
    def line(self) -> str:
        """The error in one sentence."""
        return f"{self.broker} at {self.address} is not shown: {self.error}"

    def as_json(self) -> dict[str, object]:
        """Returns the fields for programs."""
        return {
            "kind": "unreachable",
            "broker": self.broker,
            "address": self.address,
            "error": str(self.error),
        }


class Brokers(Closing):
    """The brokers of a cluster, found through one address; close it.

    Args:
        address: Address of a name server, or of a broker that is also a name server, "host:port".

    Raises:
        InvalidArgumentError: The text is no address.
    """

    def __init__(self, address: str) -> None:
        logger("seglog").addHandler(_SILENT)  # the error states what a client would log of an address
        self._client = make_client(address)

    @override
    def close(self) -> None:
        """Closes the connections."""
        self._client.close()

    def masters(self) -> dict[str, str]:
        """Returns the addresses of all masters, by the name of the broker.

        Raises:
            SeglogError: There is no answer, or the process there is no name server.
        """
        cluster = self.ask(None, RequestCode.GET_BROKER_CLUSTER_INFO, ClusterBody)
        found = {name: data.broker_addresses.get(MASTER_ID) for name, data in cluster.brokers.items()}
        return {name: where for name, where in sorted(found.items()) if where is not None}

    def ask(
        self, to: str | None, code: RequestCode, body: type[Wanted], header: Header = NO_HEADER
    ) -> Wanted:
        """Returns the body of an answer.

        Args:
            to: Address of the broker; None for the name server.
            code: The request code.
            body: Class of the answer's body.
            header: Header of the request.

        Raises:
            SeglogError: There is no answer, or the answer is an error.
        """
        answer = self._client.link.invoke(Request(code, header), TIMEOUT_MS, to)
        if answer.code is not ResponseCode.SUCCESS:
            raise RemoteProtocolError(answer.code, answer.remark or answer.code.name)
        return expect_body(answer, body)

    def groups(self, to: str) -> list[str]:
        """Returns the names of a broker's consumer groups."""
        table = self.ask(to, RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG, ConfigBody).value
        groups = table.get("subscriptionGroupTable") if isinstance(table, dict) else None
        return sorted(str(name) for name in groups) if isinstance(groups, dict) else []
