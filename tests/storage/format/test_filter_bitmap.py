"""The bitmaps of ext units have the bits of the filters that match, as the real broker set them."""

from __future__ import annotations

import pytest

from seglog.storage.format.queue.consume_queue_ext import decode_ext_unit
from seglog.storage.format.record.properties import decode_properties
from tests.support.material.config_files import read_config
from tests.support.material.ext_units import ext_positions
from tests.support.material.golden import config_names, shared
from tests.support.material.log_records import iter_log


def bitmap_of(bits, bit_count):
    """Returns the bitmap of a filter: bit b is in byte b // 8 at 1 << b % 8."""
    return sum(1 << bit for bit in set(bits)).to_bytes(bit_count // 8, "little")


@pytest.mark.parametrize("name", config_names())
def test_real_bitmaps_agree_with_the_filter_that_the_broker_evaluated(name):
    store = shared(name)
    filters = read_config(store / "config" / "consumerFilter.json")
    group = filters["filterDataByTopic"]["TopicX"]["groupFilterData"]["grpA"]
    assert group["expression"] == "a > 3 AND b = 'x'"
    bloom = group["bloomFilterData"]
    folder = store / "consumequeue_ext" / "TopicX" / "1"
    data = b"".join(path.read_bytes() for path in sorted(folder.iterdir()))
    units = []
    for at in range(0, len(data), 200):
        units += [decode_ext_unit(data, at + start) for start in ext_positions(data[at : at + 200])[:-1]]
    records = [record for record in iter_log(store) if record.topic == "TopicX" and record.row.queue_id == 1]
    assert len(units) == len(records) > 20
    matching = 0
    for unit, record in zip(units, records, strict=True):
        properties = decode_properties(record.properties)
        matches = properties.get("a", "0").isdigit() and int(properties.get("a", "0")) > 3
        matches = matches and properties.get("b") == "x"
        assert (unit.bitmap == bitmap_of(bloom["bitPos"], bloom["bitNum"])) == matches, (properties, unit)
        matching += matches
    assert 0 < matching < len(units)
