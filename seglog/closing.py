"""Base classes of objects that ``with`` or ``async with`` closes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from types import TracebackType
from typing import NoReturn, Self, SupportsIndex

from typing_extensions import override


class _OneOnly:
    """An object with threads, sockets or files, which a copy would share by accident."""

    __slots__ = ()

    @override
    def __reduce_ex__(self, protocol: SupportsIndex) -> NoReturn:
        """Refuses ``copy`` and ``pickle``, before they fail at a lock with an error that does not help.

        Raises:
            TypeError: Always.
        """
        name = type(self).__name__
        raise TypeError(f"a {name} cannot be copied or pickled: make another one where it is needed")


class Closing(_OneOnly, ABC):
    """An object that a ``with`` statement closes."""

    __slots__ = ()

    @abstractmethod
    def close(self) -> None:
        """Closes the object; a second call does nothing."""

    def __enter__(self) -> Self:
        """Returns the object itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Closes the object."""
        self.close()


class AsyncClosing(_OneOnly, ABC):
    """An object that ``async with`` closes."""

    __slots__ = ()

    @abstractmethod
    async def close(self) -> None:
        """Closes the object; a second call does nothing."""

    async def __aenter__(self) -> Self:
        """Returns the object itself."""
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Closes the object."""
        await self.close()
