"""A queue as an Arrow batch: the same values, and the same memory where that is asked for."""

from __future__ import annotations

import importlib
import sys

import pytest

from seglog.errors import MissingDependencyError, StoreInUseError
from seglog.storage.log.commit_log import HoleMap
from seglog.storage.store import MessageStore
from seglog.storage.walk.behind_damage import Hole

pa = pytest.importorskip("pyarrow")
queue_arrow = pytest.importorskip("seglog.spark.queue_arrow")

BODIES = [b"x" * size for size in (0, 1, 4, 11, 12, 13, 100, 5000)] * 20


@pytest.fixture(params=[False, True], ids=["writer", "reader"])
def store(request, tmp_path):
    with MessageStore.open(tmp_path, segment_size_bytes=1 << 17) as opened:
        for number, body in enumerate(BODIES):
            opened.put("orders", body + b"%d" % number, tags=f"T{number}")
    with MessageStore.open(tmp_path, read_only=request.param) as opened:
        yield opened


@pytest.mark.parametrize("share", [False, True])
def test_a_batch_holds_what_the_view_holds(store, share):
    view = store.queue("orders", 0)
    batch = queue_arrow.queue_batch(view, share=share)
    batch.validate(full=True)
    assert batch["body"].to_pylist() == [body + b"%d" % number for number, body in enumerate(BODIES)]
    assert batch["properties"].to_pylist() == [bytes(raw) for raw in view.properties()]
    assert batch["store_timestamp_ms"].to_pylist() == view.timestamps().tolist()
    assert batch.schema.field("body").type == (pa.binary_view() if share else pa.large_binary())
    part = queue_arrow.queue_batch(view, 5, 3, columns=("body", "queue_offset"), share=share)
    assert part.schema.names == ["body", "queue_offset"]
    assert part["queue_offset"].to_pylist() == [5, 6, 7]
    del batch, part


@pytest.mark.parametrize("share", [False, True])
def test_unreadable_messages_are_null(tmp_path, share):
    with MessageStore.open(tmp_path) as store:
        for number in range(10):
            store.put("orders", b"%d" % number)
        row = store.queue("orders", 0).units()[4].tolist()
        store._core.log.holes = HoleMap([Hole(row[0], row[1], "test")])
        batch = queue_arrow.queue_batch(store.queue("orders", 0), share=share)
        batch.validate(full=True)
        assert batch["body"].to_pylist() == [b"%d" % n if n != 4 else None for n in range(10)]
        assert batch["store_timestamp_ms"].null_count == batch["flag"].null_count == 1
        assert batch["phy_offset"].null_count == 0
        assert batch["is_message"].to_pylist() == [n != 4 for n in range(10)]
        del batch


def test_a_batch_that_shares_memory_keeps_the_store_open(tmp_path):
    store = MessageStore.open(tmp_path)
    store.put("orders", b"a body of more than twelve bytes")
    batch = queue_arrow.queue_batch(store.queue("orders", 0), share=True)
    column = batch["body"]
    del batch
    with pytest.raises(StoreInUseError, match="bodies of orders/0"):
        store.close()
    assert column.to_pylist() == [b"a body of more than twelve bytes"]
    del column
    store.close()


@pytest.mark.parametrize(
    ("module", "missing", "package"),
    [("queue_arrow", "pyarrow", "parquet"), ("datasource", "pyspark.sql", "spark")],
)
def test_a_module_without_its_package_says_how_to_install_it(monkeypatch, module, missing, package):
    monkeypatch.setitem(sys.modules, missing, None)
    monkeypatch.delitem(sys.modules, f"seglog.spark.{module}", raising=False)
    with pytest.raises(MissingDependencyError, match="is not installed") as refused:
        importlib.import_module(f"seglog.spark.{module}")
    assert refused.value.help == f"pip install 'seglog[{package}]'"
