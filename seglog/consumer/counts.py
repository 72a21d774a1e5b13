"""What a consumer has done, in numbers."""

from __future__ import annotations


class Counts:
    """What a consumer has done.

    Attributes:
        delivered: Messages that are done: the listener was, or they were given up.
        expired: Messages that the listener did not get because their TTL was over.
        failed: Messages that the listener failed at, counted each time.
        filtered: Messages that came although their tag is not wanted: codes of tags collide.
        given_up: Messages that were sent away: back to the broker, or after their last attempt.
        unreadable: Records that could not be decoded; they are passed.
    """

    __slots__ = ("delivered", "expired", "failed", "filtered", "given_up", "unreadable")

    def __init__(self) -> None:
        self.delivered = 0
        self.expired = 0
        self.failed = 0
        self.filtered = 0
        self.given_up = 0
        self.unreadable = 0

    def add(self, other: Counts) -> None:
        """Adds what another has done."""
        for name in self.__slots__:
            setattr(self, name, getattr(self, name) + getattr(other, name))
