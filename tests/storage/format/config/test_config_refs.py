"""References in config files stand for the value they lead to, and for nothing endless."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seglog.errors import CorruptError
from seglog.storage.format.config.config_json import decode_config, encode_config
from seglog.storage.format.config.config_refs import MAX_HEIGHT
from seglog.storage.format.config.config_value import ConfigValue
from tests.support.material.golden import config_names, shared
from tests.support.rows import every_row

# Written by fastjson 1.2.83 from maps and lists that share parts.
WRITTEN_BY_FASTJSON = r"""{
	"t":{
		"Topic@g.r%RETRY%a|b-c_d\"e\\f/ü$":{
			"x":1
		},
		"plain":{"$ref":"$.t.Topic\\@g\\.r\\%RETRY\\%a\\|b\\-c\\_d\\\"e\\\\f\\/ü\\$"},
		"list":[
			{"$ref":"$.t.Topic\\@g\\.r\\%RETRY\\%a\\|b\\-c\\_d\\\"e\\\\f\\/ü\\$"},
			[
				1
			]
		],
		"ints":{3:{
				"x":1
			},4:{"$ref":"$.t.ints[3]"},-5:{"$ref":"$.t.ints[3]"}
		},
		"om":{{
				"topic":"t",
				"q":0
			}:{
				"y":2
			},
			"s":{
				"y":2
			},7:{"$ref":"$.t.om.s"}
		}
	},
	"item":{"$ref":"$.t.list[1]"}
}"""


def test_what_fastjson_writes_is_resolved():
    value: Any = decode_config(WRITTEN_BY_FASTJSON)
    table = value["t"]
    assert table["plain"] == {"x": 1}
    assert table["plain"] is table['Topic@g.r%RETRY%a|b-c_d"e\\f/ü$'] is table["list"][0]
    assert table["ints"] == {3: {"x": 1}, 4: {"x": 1}, -5: {"x": 1}}
    assert table["om"][7] == {"y": 2}
    assert value["item"] == [1]
    assert decode_config(encode_config(value)) == value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"a":{"1":2},"b":{"$ref":"$.a"}}', {"a": {"1": 2}, "b": {"1": 2}}),
        ('{"a":{"1":2},"b":{"$ref":"$.a[1]"}}', {"a": {"1": 2}, "b": 2}),
        ('{"b":{"$ref":"$.c"},"c":{"$ref":"$.d"},"d":[1]}', {"b": [1], "c": [1], "d": [1]}),
        ('{"b":{"$ref":7}}', {"b": {"$ref": 7}}),
        ('{"b":{"$ref":"$.x","more":1}}', {"b": {"$ref": "$.x", "more": 1}}),
    ],
)
def test_other_forms(text, value):
    assert decode_config(text) == value


NOWHERE = (
    "$",
    "@",
    "..",
    "",
    "$.",
    "$.b",
    "$.none",
    "$.a.none",
    "$.l[2]",
    "$.l[-1]",
    "$.l.x",
    "$.n[0]",
    "$x",
    "$.a[",
)


def test_references_that_lead_nowhere_or_back_are_refused():
    with every_row() as row:
        for path in NOWHERE:
            with row(path), pytest.raises(CorruptError, match="config-ref"):
                decode_config(f'{{"a":{{}},"l":[1,2],"n":5,"b":{{"c":{{"$ref":"{path}"}}}}}}')


@pytest.mark.parametrize(
    "text", ['{"$ref":"$.a"}', '{"$ref":"$"}', '{"a":{"$ref":"$.b"},"b":{"$ref":"$.a"}}']
)
def test_references_to_references_end(text):
    with pytest.raises(CorruptError, match="config-ref"):
        decode_config(text)


def test_what_would_grow_without_measure_is_refused():
    doubled = ",".join(f'"v{n}":[{{"$ref":"$.v{n - 1}"}},{{"$ref":"$.v{n - 1}"}}]' for n in range(1, 40))
    with pytest.raises(CorruptError, match="characters"):
        decode_config(f'{{"v0":[1],{doubled}}}')
    long = "x" * 10_000
    copies = ",".join(['{"$ref":"$.long"}'] * 1_000)
    with pytest.raises(CorruptError, match="characters"):
        decode_config(f'{{"long":"{long}","copies":[{copies}]}}')
    deep = ",".join(f'"v{n}":[{{"$ref":"$.v{n - 1}"}}]' for n in range(1, 3 * MAX_HEIGHT))
    with pytest.raises(CorruptError, match="levels"):
        decode_config(f'{{"v0":[1],{deep}}}')
    last_first = ",".join(f'"v{n}":[{{"$ref":"$.v{n - 1}"}}]' for n in range(3 * MAX_HEIGHT, 0, -1))
    with pytest.raises(CorruptError, match="levels"):
        decode_config(f'{{{last_first},"v0":[1]}}')


@given(st.text("$.[]\\ab0@", max_size=12))
def test_arbitrary_paths_raise_nothing_but_our_error(path):
    text = encode_config({"a": {"b": {}, "0": [1]}, "r": {"$ref": path}})
    with contextlib.suppress(CorruptError):
        decode_config(text)


@pytest.mark.parametrize("name", [*config_names(), "broker-store"])
def test_every_config_file_and_backup_of_a_real_broker_is_read_and_kept(name):
    store = shared(name)
    paths = [path for path in (store / "config").iterdir() if not path.name.startswith("timercheck")]
    paths.append(store / "compaction" / "position-checkpoint")
    assert len([path for path in paths if path.suffix == ".bak"]) >= 6
    for path in paths:
        value: ConfigValue = decode_config(path.read_bytes())
        assert isinstance(value, dict)
        assert value
        assert decode_config(encode_config(value)) == value
