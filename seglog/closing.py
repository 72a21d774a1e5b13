"""What can be closed is closed at the end of its ``with`` statement, or of ``async with``."""

from __future__ import annotations

from abc import ABC, abstractmethod
from types import TracebackType
from typing import Self


class Closing(ABC):
    """Something that a ``with`` statement closes."""

    __slots__ = ()

    @abstractmethod
    def close(self) -> None:
        """Ends it; a second call does nothing."""

    def __enter__(self) -> Self:
        """Returns itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Closes it."""
        self.close()


class AsyncClosing(ABC):
    """Something that ``async with`` closes."""

    __slots__ = ()

    @abstractmethod
    async def close(self) -> None:
        """Ends it; a second call does nothing."""

    async def __aenter__(self) -> Self:
        """Returns itself."""
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Closes it."""
        await self.close()
