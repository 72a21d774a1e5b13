"""Where the addresses of name servers are asked for by HTTP, in place of being given.

Operators that move their name servers keep the list behind one address, in RocketMQ's words ``wsAddr``, such
as ``http://jmenv.tbsite.net:8080/rocketmq/nsaddr``. A client asks for it at its start and every two minutes.

Truth: the answer of that address. What it said last stays where it does not answer.

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
"""How often it is asked, after the time of the first."""
FETCH_MS: Final = 3_000
_MOST_BYTES: Final = 1 << 16
_OK: Final = 200
_SCHEMES: Final = ("http://", "https://")

Fetch: TypeAlias = Callable[[str], Deferred[str]]
"""Asks an address for its text; it returns at once, and fails with a ``CannotConnectError``."""

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
    """The name servers of one client, as an address says. Any thread may call it.

    Args:
        url: The address, ``http://host:port/path``.
        unit_name: Of the client; such a unit has a list of its own, ``path-unit?nofix=1``.
        fetch: How it is asked; by HTTP, in a thread of its own.

    Attributes:
        url: What is asked, whole.
        addresses: Those that were said last, each once; none before the first answer.

    Raises:
        InvalidArgumentError: ``url`` is no such address.
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
        """Asks again, unless it is asked just now; returns what says that there is an answer.

        That fails with a ``CannotConnectError`` where there is none, or none that names a name server; what
        was said before stays.
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
    """Returns what Java's client takes of an answer."""
    return text.strip().partition("\r")[0].partition("\n")[0]


def fetch_by_http(url: str) -> Deferred[str]:
    """Asks by HTTP, as a thread of its own does; the answer has 3 s, and 64 KiB.

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
