"""The real Apache RocketMQ broker, asked over a connection; :meth:`Judge.broker` starts one."""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from seglog.remoting.command import Request
from seglog.storage.format.config.config_json import decode_config
from tests.interop.judging.wire import WireAnswer, WireRequest, encode_request


@dataclass(frozen=True, slots=True)
class JavaBroker:
    """A running broker.

    Attributes:
        port: Where it listens, on 127.0.0.1.
        name_server_port: Where its name server does; 0 without one.
        home: The home folder of the user that it and its clients believe to be.
    """

    port: int
    name_server_port: int
    home: Path
    _question: Callable[[Mapping[str, object]], list[dict[str, Any]]]

    def ask(self, request: Request, client: str = "") -> WireAnswer:
        """Sends one of our typed requests; each client has a connection of its own."""
        return self.ask_wire(encode_request(request), client)

    def ask_code(self, code: int, body: bytes | None = None, **ext: str) -> WireAnswer:
        """Sends a request that we have no type for."""
        return self.ask_wire(WireRequest(code, ext, body))

    def restart_name_server(self, away_ms: int) -> None:
        """Ends the name server, and starts another one at its port, which knows no topic at first.

        Args:
            away_ms: How long there is none.
        """
        self._question({"op": "nameServerRestart", "timeoutMs": away_ms})

    def join(self, name: str, group: str, topic: str, *, is_in_order: bool, broadcasts: bool = False) -> str:
        """Has a consumer of RocketMQ's own client join a group; returns its client id.

        Args:
            name: Of the member, for :meth:`look` and :meth:`leave`.
            group: Its group.
            topic: What it subscribes to.
            is_in_order: Of which kind its listener is.
            broadcasts: Whether it consumes all queues, and goes on by a file in :attr:`home`.
        """
        question = {"op": "memberStart", "client": name, "group": group, "topic": topic}
        (answer,) = self._question(question | {"isOrdered": is_in_order, "broadcasts": broadcasts})
        client_id: str = answer["clientId"]
        return client_id

    def look(self, name: str, topic: str) -> tuple[list[dict[str, Any]], list[int]]:
        """Returns what a member was given since it was looked at last, and the queues that it has."""
        (answer,) = self._question({"op": "memberLook", "client": name, "topic": topic})
        return answer["seen"], answer["queues"]

    def leave(self, name: str) -> None:
        """Has a member leave its group."""
        self._question({"op": "memberStop", "client": name})

    def admin(self, *arguments: str, name_servers: str | None = None) -> str:
        """Runs a command of mqadmin, and returns what it prints.

        Args:
            arguments: The command and its options.
            name_servers: Of another cluster than this broker's, where it is run there.
        """
        question = {"op": "admin", "arguments": list(arguments), "nameServers": name_servers}
        (answer,) = self._question(question)
        printed: str = answer["printed"] + answer["complained"]
        return printed

    def topics(self) -> dict[str, Any]:
        """Returns the settings of every topic, as ``config/topics.json`` holds them."""
        return self._table(21, "topicConfigTable")

    def groups(self) -> dict[str, Any]:
        """Returns the settings of every group, as ``config/subscriptionGroup.json`` holds them."""
        return self._table(201, "subscriptionGroupTable")

    def offsets(self) -> dict[str, dict[int, int]]:
        """Returns all offsets by ``topic@group`` and queue."""
        return self._table(43, "offsetTable")

    def _table(self, code: int, name: str) -> dict[str, Any]:
        table: Any = decode_config(self.ask_code(code).body)
        found: dict[str, Any] = table[name]
        return found

    def ask_wire(self, request: WireRequest, client: str = "") -> WireAnswer:
        """Sends a request, and returns the answer once everything stored is in its queue."""
        body = None if request.body is None else base64.b64encode(request.body).decode()
        (answer,) = self._question(
            {
                "op": "brokerAsk",
                "client": client,
                "code": request.code,
                "ext": dict(request.ext),
                "body": body,
            }
        )
        found = answer["body"]
        return WireAnswer(
            answer["code"],
            answer["remark"],
            answer["ext"] or {},
            b"" if found is None else base64.b64decode(found),
        )
