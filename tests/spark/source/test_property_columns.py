"""Properties of many records at once are what the format reads of each."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given

from seglog.spark.source.values.columns import PROPERTY_MAP
from seglog.spark.source.values.property_columns import PropertyColumns
from seglog.storage.format.record.properties import decode_properties
from tests.storage.kernels.test_gather import laid_out, stored
from tests.support.machine.kernels import BOTH, running


@pytest.mark.parametrize("kernels", BOTH)
@given(values=stored)
def test_columns_of_properties(kernels, values):
    expected = [decode_properties(value) for value in values]
    with running(kernels):
        columns = PropertyColumns(*laid_out(values))
        found = columns.mapping(PROPERTY_MAP)
        found.validate(full=True)
        assert [dict(row) for row in found.to_pylist()] == expected
        assert all(len(row) == len(dict(row)) for row in found.to_pylist())
        assert columns.values("KEYS").to_pylist() == [row.get("KEYS") for row in expected]


@pytest.mark.parametrize("kernels", BOTH)
def test_very_many_entries_and_names(kernels):
    value = b"".join(b"name%d\x01%d\x02" % (number % 80, number) for number in range(200))
    with running(kernels):
        columns = PropertyColumns(*laid_out([value, b"", b"a\x01b"]))
        rows = [dict(row) for row in columns.mapping(PROPERTY_MAP).to_pylist()]
        assert rows == [decode_properties(value), {}, {"a": "b"}]
        assert columns.values("name7").to_pylist() == ["167", None, None]


@pytest.mark.parametrize("kernels", BOTH)
def test_no_records(kernels):
    with running(kernels):
        nothing = np.zeros(0, np.int64)
        assert (
            PropertyColumns(np.zeros(0, np.uint8), nothing, nothing).mapping(PROPERTY_MAP).to_pylist() == []
        )
