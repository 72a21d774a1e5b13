"""What can be closed is closed at the end of its ``with`` statement, or of ``async with``."""

from __future__ import annotations

from abc import ABC, abstractmethod
from types import TracebackType
from typing import NoReturn, Self, SupportsIndex

from typing_extensions import override


class _OneOnly:
    """Has threads, sockets or files, which a copy would share without knowing."""

    __slots__ = ()

    @override
    def __reduce_ex__(self, protocol: SupportsIndex) -> NoReturn:
        """Refuses ``copy`` and ``pickle``, before they come upon a lock that says no more.

        Raises:
            TypeError: Always.
        """
        name = type(self).__name__
        raise TypeError(f"a {name} cannot be copied or pickled: make another one where it is needed")


class Closing(_OneOnly, ABC):
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


class AsyncClosing(_OneOnly, ABC):
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
