"""Sends requests of a consumer to the broker of a queue, at the address that the routes have for it."""

from __future__ import annotations

from typing import Final, TypeVar

from seglog.client.client import Client
from seglog.client.home import until
from seglog.errors import BrokerNotFoundError, RemoteProtocolError, SeglogError
from seglog.remoting.codes import RequestCode, ResponseCode
from seglog.remoting.command import Header, Request, Response, expect_header
from seglog.remoting.heartbeat import CheckClientBody
from seglog.remoting.later import Deferred
from seglog.remoting.subscription import SubscriptionData, is_tag_type

H = TypeVar("H", bound=Header)
_HELP_OF_FILTERS: Final = (
    "check the expression, and that the broker filters by properties: enablePropertyFilter=true, as in"
    " `seglog serve --set enablePropertyFilter=true` or BrokerConfig(enable_property_filter=True)"
)


class Brokers:
    """The brokers of one client's routes. Its flows run on the client's home.

    Args:
        client: Its routes and link are used.
    """

    def __init__(self, client: Client) -> None:
        self._client = client

    async def ask(
        self, broker_name: str, request: Request, timeout_ms: float | None = None, broker_id: int = 0
    ) -> Response:
        """Returns a broker's answer, refusals included.

        Raises:
            BrokerNotFoundError: No route has its address.
            SeglogError: There is no answer.
        """
        address = self._client.routes.address_of(broker_name, broker_id)
        if address is None:
            raise BrokerNotFoundError(f"no route says where broker {broker_name} is")
        return await until(self._client.link.ask(request, timeout_ms, to=address))

    def settle(self) -> Deferred[None]:
        """Returns what is resolved once committed offsets are as durable as the broker promises.

        It fails with a SeglogError where they cannot be written.
        """
        return self._client.link.settle()

    async def ask_for(self, broker_name: str, request: Request, kind: type[H]) -> H:
        """Returns the header of a broker's answer.

        Raises:
            RemoteProtocolError: It refuses.
            SeglogError: There is no answer.
        """
        return expect_header(await self.ask(broker_name, request), kind)

    async def refusal_of(self, group: str, wanted: SubscriptionData) -> RemoteProtocolError | None:
        """Returns the refusal of a subscription by the broker of the topic; None if the broker accepts it.

        Only one broker is asked: as in Java, all brokers of a topic are assumed to be set alike. For a topic
        that does not exist yet a broker that would create it is asked; if there is none, no request is sent.

        Args:
            group: The consumer group.
            wanted: The subscription.

        Raises:
            SeglogError: There is no answer.
        """
        routes = self._client.routes
        queues = routes.known_to_read(wanted.topic) if await routes.refresh(wanted.topic) else ()
        try:
            queues = queues or await routes.ask_to_publish(wanted.topic)
        except RemoteProtocolError:
            return None
        broker_name = min(queues).broker_name
        body = CheckClientBody(self._client.client_id, group, wanted)
        answer = await self.ask(broker_name, Request(RequestCode.CHECK_CLIENT_CONFIG, body=body))
        if answer.code is ResponseCode.SUCCESS:
            return None
        what = (
            f"broker {broker_name} refuses {wanted.expression_type} {wanted.expression!r} of {wanted.topic}"
        )
        return RemoteProtocolError(
            answer.code,
            f"{what}: {answer.remark or answer.code.name}",
            help=None if is_tag_type(wanted.expression_type) else _HELP_OF_FILTERS,
        )

    async def order(self, broker_name: str, request: Request) -> None:
        """Sends a request whose answer has no content.

        Raises:
            RemoteProtocolError: It refuses.
            SeglogError: There is no answer.
        """
        check(await self.ask(broker_name, request))


def is_fenced(error: SeglogError) -> bool:
    """Returns whether a broker of ours refuses a commit, since another member has begun in the queue."""
    return isinstance(error, RemoteProtocolError) and error.code is ResponseCode.ILLEGAL_OPERATION


def check(response: Response) -> None:
    """Raises the error of a refusal.

    Raises:
        RemoteProtocolError: The response is a refusal.
    """
    if response.code is not ResponseCode.SUCCESS:
        raise RemoteProtocolError(response.code, response.remark or response.code.name)
