"""What the package exports: the values of its own calls too, and nothing that a type checker invents.

The ignored errors below are a test of their own: `make types` refuses an ignore without an error.
"""

from __future__ import annotations

import pytest

import seglog

NAMED = {"BatchSendResult", "BrokerConfig", "GetResult", "PutResult", "SendResult"}


@pytest.mark.parametrize("name", sorted(seglog.__all__))
def test_each_name_can_be_imported(name):
    assert getattr(seglog, name) is not None


def test_what_public_calls_take_and_return_can_be_imported_from_the_package(tmp_path):
    assert set(seglog.__all__) >= NAMED
    with seglog.Broker.open(tmp_path / "s", config=seglog.BrokerConfig(), small=True) as broker:
        with seglog.Producer(broker) as producer:
            assert isinstance(producer.send("T", b"x"), seglog.SendResult)
            assert isinstance(producer.send_batch("T", [b"x"]), seglog.BatchSendResult)
        assert isinstance(broker.store.put("T", b"x"), seglog.PutResult)
        assert isinstance(broker.store.get("T", 0, 0), seglog.GetResult)


def test_a_name_that_is_not_there_is_refused_by_python_and_by_a_type_checker():
    with pytest.raises(ImportError):
        from seglog import SendResulT  # type: ignore[attr-defined]  # noqa: F401
    with pytest.raises(ImportError):
        from seglog.spark.archive import Nowhere  # type: ignore[attr-defined]  # noqa: F401
    with pytest.raises(AttributeError):
        seglog.Nowhere  # type: ignore[attr-defined]  # noqa: B018
