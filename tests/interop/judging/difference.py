"""One difference between our broker and RocketMQ that is meant; ``differences.py`` has all."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from seglog.broker.broker import Broker
from seglog.broker.settings.releases import RELEASES
from seglog.remoting.command import Request
from tests.interop.judging.alike import Essence

Shown = Request | Callable[[int], Request]
"""A request, or one about the place in the log of the message that was sent last."""
LeadsApart = Callable[[Request, Broker], bool]
Holds = Callable[[Request, Essence, Essence], bool]


@dataclass(frozen=True, kw_only=True)
class Difference:
    """One difference that is meant.

    Attributes:
        name: A short one; the requests that show it use it for topics and groups.
        request: What is asked.
        theirs: What RocketMQ does.
        ours: What we do.
        why: The reason.
        shown_by: Requests, the last of which the two answer differently.
        looks_at: What of an answer shows it.
        there: What that is in theirs.
        here: What that is in ours.
        leads_apart: Whether a request is such a one, of the request and our broker before it. The brokers
            would hold different things afterwards, so random sequences leave it out.
        is_drawn: Whether random sequences come to such requests at all.
        fields: What differs in the answer, where it is the answer alone.
        holds: Whether two different answers are such ones: of the request, our answer and theirs.
        since: First release that it holds of; older ones answer as ours. None for all.
    """

    name: str
    request: str
    theirs: str
    ours: str
    why: str
    shown_by: tuple[Shown, ...]
    looks_at: Callable[[Essence], Any] = lambda answer: answer["code"]
    there: Any
    here: Any
    leads_apart: LeadsApart | None = None
    is_drawn: bool = True
    fields: tuple[str, ...] = ()
    holds: Holds | None = None
    since: str | None = None

    def is_in(self, release: str) -> bool:
        """Returns whether a release of RocketMQ is one that it holds of."""
        names = list(RELEASES)
        return self.since is None or names.index(release) >= names.index(self.since)

    def allows(self, field: str, request: Request, ours: Essence, theirs: Essence) -> bool:
        """Returns whether a field of the answers may differ."""
        return field in self.fields and self.holds is not None and self.holds(request, ours, theirs)
