"""The native pull: what ``MessageStore.get`` does for plain reads, without a line of Python.

It looks at memory that is mapped already, and asks for nothing else: files, queues and filters that it has
not met are the Python method's, which adds them. Without native kernels none of these
objects exist, and Python does everything.
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
    """Returns a table for the maps of a sequence of files, all of the same length."""
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
    """Returns what serves plain reads of a store that is open for writing.

    Args:
        result_type: What they return.
        filter_type: Filters of exactly this type have their ``tag_set``.
        statuses: Of a read that found something, and of one whose filter left nothing.
        log: Its tail and its maps.
        limits: Messages at most and stored bytes at most unless the caller says so, and units that a
            filtered read looks at.
    """
    tail, maps = log
    if native_reads is None or maps is None:
        return None
    return native_reads(result_type, filter_type, *statuses, tail, maps, limits)
