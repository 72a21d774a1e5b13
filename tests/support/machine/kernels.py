"""Runs tests over the Python kernels and over the native ones, whichever of them serve by default."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType

import pytest

from seglog.storage.kernels import NATIVE, PYTHON
from seglog.storage.kernels import block_sums as sums_module
from seglog.storage.kernels import gather as gather_module
from seglog.storage.kernels import index_entries as entries_module
from seglog.storage.kernels import index_keys as keys_module
from seglog.storage.kernels import key_winners as winners_module
from seglog.storage.kernels import message_columns as columns_module
from seglog.storage.kernels import parallel_walk as side_by_side_module
from seglog.storage.kernels import pending_record as append_module
from seglog.storage.kernels import queue_rows as units_module
from seglog.storage.kernels import queue_units as spilled_module
from seglog.storage.kernels import record_facts as facts_module
from seglog.storage.kernels import record_moves as moves_module
from seglog.storage.kernels import walk as walk_module
from seglog.storage.kernels import walk_into as walk_into_module

BOTH = (PYTHON, NATIVE)


def native() -> ModuleType:
    """Returns the native kernels; without them the test is skipped."""
    try:
        return importlib.import_module("seglog.storage.kernels._native")
    except ImportError:
        pytest.skip("the native kernels were not built (make kernels)")


@contextmanager
def running(kernels: str) -> Iterator[None]:
    """Makes one or the other serve for a while; ``PendingRecord`` only where it is read from its module."""
    module = native() if kernels == NATIVE else None
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(walk_module, "native_walk", module and module.walk)
        patch.setattr(walk_module, "native_find", module and module.find_record)
        patch.setattr(keys_module, "native_keys", module and module.index_keys)
        patch.setattr(keys_module, "native_have", module and module.have_key)
        patch.setattr(keys_module, "native_digest", module and module.key_digest)
        patch.setattr(keys_module, "native_digests", module and module.key_digests)
        patch.setattr(units_module, "native_group", module and module.group_rows)
        patch.setattr(walk_into_module, "native_into", module and module.walk_into)
        patch.setattr(side_by_side_module, "native_stretch", module and module.walk_stretch)
        patch.setattr(keys_module, "native_key_rows", module and module.key_rows)
        patch.setattr(keys_module, "native_put_keys", module and module.put_keys)
        patch.setattr(units_module, "native_stand_in", module and module.rows_stand_in)
        patch.setattr(entries_module, "native_extent", module and module.entries_extent)
        patch.setattr(entries_module, "native_follow", module and module.follow_entries)
        patch.setattr(entries_module, "native_stand_for", module and module.entries_stand_for)
        patch.setattr(sums_module, "native_block_sums", module and module.block_sums)
        patch.setattr(gather_module, "native_copy", module and module.copy_strings)
        patch.setattr(gather_module, "native_parts", module and module.parts_of)
        patch.setattr(columns_module, "native_columns", module and module.message_columns)
        patch.setattr(facts_module, "native_facts", module and module.record_facts)
        patch.setattr(moves_module, "native_moves", module and module.move_records)
        patch.setattr(spilled_module, "native_units", module and module.spilled_units)
        patch.setattr(spilled_module, "native_by_queue", module and module.units_by_queue)
        patch.setattr(winners_module, "native_last", module and module.last_of_keys)
        patch.setattr(
            append_module,
            "PendingRecord",
            module.PendingRecord if module else append_module.PythonPendingRecord,
        )
        yield
