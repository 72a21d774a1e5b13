"""Requests the addresses of name servers by HTTP, if they are not given.

Operators that move their name servers publish the list at one address, RocketMQ's ``wsAddr``, such as
``http://jmenv.tbsite.net:8080/rocketmq/nsaddr``. A client requests it at its start and every two minutes.

Truth: the answer of that address. If it does not answer, the last list stays.

Source: ``DefaultTopAddressing.java fetchNSAddr``, ``MQClientAPIImpl.java fetchNameServerAddr``.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Final, TypeAlias

from seglog.client.links.addresses import name_server_list
from seglog.errors import CannotConnectError, InvalidArgumentError
from seglog.logs import logger
from seglog.remoting.later import Deferred

FIRST_LOOKUP_MS: Final = 10_000
LOOKUP_MS: Final = 120_000
"""The time between two requests, and before it that until the second one."""
FETCH_MS: Final = 3_000
_MOST_BYTES: Final = 1 << 16
_OK: Final = 200
_SCHEMES: Final = ("http://", "https://")

Fetch: TypeAlias = Callable[[str], Deferred[str]]
"""Requests the text at an address; returns at once; the result may fail with ``CannotConnectError``."""

_log = logger(__name__)


def is_lookup(target: str) -> bool:
    """Whether a text is the address of a list of name servers: one with a scheme and a path."""
    from urllib.parse import urlsplit  # which most clients need not load

    url = target.strip()
    if not (url.startswith(_SCHEMES) and url.isascii() and url.isprintable()):
        return False
    try:
        parts = urlsplit(url)
        is_port = parts.port != 0  # a ValueError where it is no number
    except ValueError:
        return False
    return is_port and " " not in url and bool(parts.hostname) and len(parts.path) > 1


class Lookup:
    """The name servers of one client, from an HTTP address. Any thread may call it.

    Args:
        url: The address, ``http://host:port/path``.
        unit_name: Of the client; such a unit has a list of its own, ``path-unit?nofix=1``.
        fetch: Makes the request; by default by HTTP, in a thread of its own.

    Attributes:
        url: The whole URL of the request.
        addresses: The addresses of the last answer, each once; none before the first answer.

    Raises:
        InvalidArgumentError: ``url`` is not such an address.
    """

    def __init__(self, url: str, unit_name: str | None = None, fetch: Fetch | None = None) -> None:
        if not is_lookup(url):
            raise InvalidArgumentError(
                f"{url!r} is no address of a list of name servers",
                help='give its scheme and path, such as "http://names.example:8080/rocketmq/nsaddr"',
            )
        unit = "" if unit_name is None else unit_name.strip()
        self.url = f"{url.strip()}-{unit}?nofix=1" if unit else url.strip()
        self.addresses: tuple[str, ...] = ()
        self._fetch = fetch_by_http if fetch is None else fetch
        self._lock = threading.Lock()
        self._asking: Deferred[None] | None = None

    def look(self) -> Deferred[None]:
        """Sends a request, unless one is in flight; returns a deferred that is resolved with the answer.

        It fails with a ``CannotConnectError`` if there is no answer, or none with a name server; the last
        list stays then.
        """
        with self._lock:
            if self._asking is not None:
                return self._asking
            self._asking = asking = Deferred[None]()
        self._fetch(self.url).then(lambda fetched: self._take(fetched, asking))
        return asking

    def _take(self, fetched: Deferred[str], asking: Deferred[None]) -> None:
        error = fetched.error
        if error is None:
            try:
                self._change(name_server_list(_first_line(fetched.result())))
            except InvalidArgumentError as refused:
                error = CannotConnectError(f"{self.url} names no name server: {refused}", address=self.url)
        with self._lock:
            self._asking = None
        if error is None:
            asking.resolve(None)
        else:
            asking.fail(error)

    def _change(self, addresses: tuple[str, ...]) -> None:
        if addresses != self.addresses:
            before, now = ";".join(self.addresses) or "none", ";".join(addresses)
            _log.info("name servers are %s, as %s says; they were %s", now, self.url, before)
            self.addresses = addresses


def _first_line(text: str) -> str:
    """Returns the part of an answer that Java's client uses."""
    return text.strip().partition("\r")[0].partition("\n")[0]


def fetch_by_http(url: str) -> Deferred[str]:
    """Requests a URL by HTTP, in a thread of its own; the answer may take 3 s and have 64 KiB.

    Args:
        url: With a scheme, a host and a path.
    """
    from http.client import HTTPException

    fetched: Deferred[str] = Deferred()

    def ask() -> None:
        try:
            fetched.resolve(_get(url))
        except (OSError, HTTPException, ValueError) as error:
            what = f"name servers cannot be asked for at {url}: {str(error) or type(error).__name__}"
            fetched.fail(CannotConnectError(what, address=url))

    threading.Thread(target=ask, name="seglog-lookup", daemon=True).start()
    return fetched


def _get(url: str) -> str:
    from http.client import HTTPConnection, HTTPSConnection
    from urllib.parse import urlsplit

    parts = urlsplit(url)
    kind = HTTPSConnection if parts.scheme == "https" else HTTPConnection
    connection = kind(parts.hostname or "", parts.port, timeout=FETCH_MS / 1000)
    try:
        query = f"?{parts.query}" if parts.query else ""
        connection.request("GET", f"{parts.path}{query}", headers={"Accept": "text/plain"})
        answer = connection.getresponse()
        text = answer.read(_MOST_BYTES).decode("utf-8", "replace")
        if answer.status != _OK:
            raise OSError(f"the answer has status {answer.status}")
    finally:
        connection.close()
    return text
