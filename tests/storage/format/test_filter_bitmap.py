"""A clear bit rules a filter out; anything unclear lets the message pass to the real evaluation."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seglog.errors import InvalidArgumentError
from seglog.storage.format.consume_queue_ext import decode_ext_unit, ext_positions
from seglog.storage.format.filter_bitmap import bitmap_hits, make_bitmap
from seglog.storage.format.properties import decode_properties
from tests.support.config_files import read_config
from tests.support.golden import config_names, extract
from tests.support.log_records import iter_log

BITS = st.sets(st.integers(0, 111))


def test_bits_count_from_the_least_significant_side():
    assert make_bitmap([0, 9], 16) == b"\x01\x02"


@given(BITS, BITS)
def test_a_filter_hits_exactly_where_all_its_bits_are_set(are_set, wanted):
    assert bitmap_hits(make_bitmap(are_set, 112), sorted(wanted), 112) == (wanted <= are_set)


def test_a_bitmap_of_another_length_rules_nothing_out():
    assert bitmap_hits(b"", [5], 112)
    assert bitmap_hits(bytes(13), [5], 112)
    assert bitmap_hits(bytes(14), [500], 112)


def test_a_bit_outside_is_refused():
    with pytest.raises(InvalidArgumentError):
        make_bitmap([112], 112)


@pytest.mark.parametrize("name", config_names())
def test_real_bitmaps_agree_with_the_filter_that_the_broker_evaluated(name, tmp_path):
    store = extract(name, tmp_path)
    filters = read_config(store / "config" / "consumerFilter.json")
    group = filters["filterDataByTopic"]["TopicX"]["groupFilterData"]["grpA"]
    assert group["expression"] == "a > 3 AND b = 'x'"
    bloom = group["bloomFilterData"]
    folder = store / "consumequeue_ext" / "TopicX" / "1"
    data = b"".join(path.read_bytes() for path in sorted(folder.iterdir()))
    units = []
    for at in range(0, len(data), 200):
        units += [
            decode_ext_unit(data, at + start) for start in ext_positions(data[at : at + 200])[:-1].tolist()
        ]
    records = [record for record in iter_log(store) if record.topic == "TopicX" and record.row.queue_id == 1]
    assert len(units) == len(records) > 20
    hits = []
    for unit, record in zip(units, records, strict=True):
        properties = decode_properties(record.properties)
        matches = properties.get("a", "0").isdigit() and int(properties.get("a", "0")) > 3
        matches = matches and properties.get("b") == "x"
        hits.append(bitmap_hits(unit.bitmap, bloom["bitPos"], bloom["bitNum"]))
        assert hits[-1] or not matches, (properties, unit)
        assert (unit.bitmap == make_bitmap(bloom["bitPos"], bloom["bitNum"])) == matches
    assert 0 < sum(hits) < len(hits)
