"""The native pull: ``MessageStore.get`` for plain reads, without executing Python code.

It reads only memory that is mapped already. A read with a file, queue or filter that it does not know is left
to the Python method, which registers them. Without native kernels none of these objects exist, and Python
does all reads.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, TypeVar

from seglog.storage.format.get_status import GetStatus
from seglog.storage.kernels import KERNELS, NATIVE

if TYPE_CHECKING:
    from seglog.storage.kernels import _native
    from seglog.storage.kernels.calls.read_result import ReadResult

F = TypeVar("F", bound="ReadResult")

native_maps: type[_native.Maps] | None = None
native_tag_set: type[_native.TagSet] | None = None
native_reads: type[_native.Reads[Any]] | None = None
if KERNELS == NATIVE:
    from seglog.storage.kernels import _native

    native_maps, native_tag_set, native_reads = _native.Maps, _native.TagSet, _native.Reads


def new_maps(file_size_bytes: int) -> _native.Maps | None:
    """Returns a table for the maps of a sequence of files of equal length."""
    return None if native_maps is None else native_maps(file_size_bytes)


def new_tag_set(codes: Iterable[int], tags: Iterable[bytes] | None) -> _native.TagSet | None:
    """Returns the tags of a filter.

    Args:
        codes: The tags codes that pass.
        tags: The tags to compare after them; None if codes are enough.
    """
    if native_tag_set is None:
        return None
    return native_tag_set(tuple(codes), None if tags is None else tuple(tags))


def new_reads(
    result_type: type[F],
    filter_type: type,
    statuses: tuple[GetStatus, GetStatus],
    log: tuple[object, _native.Maps | None],
    limits: tuple[int, int, int],
) -> _native.Reads[F] | None:
    """Returns the native plain reads of a store that is open for writing.

    Args:
        result_type: Class of results.
        filter_type: Filters of exactly this type have a ``tag_set``.
        statuses: Status of a read that found messages, and of a read whose filter ruled out all of them.
        log: Tail and maps of the log.
        limits: Default limits of messages and of stored bytes, and the number of units that a filtered read
            examines.
    """
    tail, maps = log
    if native_reads is None or maps is None:
        return None
    return native_reads(result_type, filter_type, *statuses, tail, maps, limits)
