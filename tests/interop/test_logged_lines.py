"""What findings say that RocketMQ logs is in RocketMQ's own classes."""

from __future__ import annotations

import struct
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from seglog.storage.findings.rocketmq_lines import codes_of_lines
from tests.interop.judging import toolchain
from tests.support.rows import every_row

pytestmark = pytest.mark.interop

VALUE = "…"
_TAG_TEXT = 1
_TAGS_OF_TWO = frozenset({5, 6})
"""Long and double: such a constant takes two numbers."""
_SIZES = {
    3: 4,
    4: 4,
    5: 8,
    6: 8,
    7: 2,
    8: 2,
    9: 4,
    10: 4,
    11: 4,
    12: 4,
    15: 3,
    16: 2,
    17: 4,
    18: 4,
    19: 2,
    20: 2,
}
_COUNT_AT = 8
_JARS = ("store", "broker", "common")
_IN_PLACE_OF_VALUES = ("{}", "%d", "%s")
_LETTERS_TO_FIND = 5


def texts_of(data: bytes) -> Iterator[str]:
    """Yields the texts among the constants of a class file."""
    (count,) = struct.unpack_from(">H", data, _COUNT_AT)
    at, number = _COUNT_AT + 2, 1
    while number < count:
        tag = data[at]
        if tag == _TAG_TEXT:
            (size,) = struct.unpack_from(">H", data, at + 1)
            yield data[at + 3 : at + 3 + size].decode("utf-8", "replace")
            at += 3 + size
        else:
            at += 1 + _SIZES[tag]
        number += 2 if tag in _TAGS_OF_TWO else 1


@pytest.fixture(scope="module")
def said(request: pytest.FixtureRequest) -> str:
    """All texts of RocketMQ's store, broker and common classes, a line each."""
    request.getfixturevalue("judge")  # it skips, or fails, where there is no Java
    texts: list[str] = []
    folders = {Path(path).parent for path in toolchain.build(toolchain.DEFAULT_VERSION).split(":")}
    jars = [jar for folder in folders for name in _JARS for jar in folder.glob(f"rocketmq-{name}-*.jar")]
    assert len(jars) == len(_JARS)
    for jar in jars:
        with zipfile.ZipFile(jar) as opened:
            for name in opened.namelist():
                if name.endswith(".class"):
                    texts += texts_of(opened.read(name))
    joined = "\n".join(texts)
    for held in _IN_PLACE_OF_VALUES:
        joined = joined.replace(held, VALUE)
    return joined


def test_rocketmqs_classes_have_the_text_of_a_line(said):
    with every_row() as row:
        for line in codes_of_lines():
            texts = line.replace("abnormally", VALUE).split(VALUE)
            parts = [part for part in texts if len(part) >= _LETTERS_TO_FIND]
            with row(line):
                assert parts
                assert [part for part in parts if part not in said] == []
