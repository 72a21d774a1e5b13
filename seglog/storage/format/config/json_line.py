"""One line of a file of JSON objects: rows that were exported or parked, receipts, what a check saw.

Truth: none of its own. Such files is untrusted, so that a line nests as deep, and has as long
numbers, as their writer liked; nothing but ``CorruptError`` comes of it.
"""

from __future__ import annotations

import json
from typing import Any

from seglog.errors import CorruptError


def decode_json_line(line: str | bytes) -> Any:  # noqa: ANN401 - what JSON can hold; who asks checks its shape
    """Returns the value of a line.

    Raises:
        CorruptError: It is no JSON, or nests too deep.
    """
    try:
        return json.loads(line)
    except (ValueError, RecursionError) as error:
        raise CorruptError("json-line", expected="JSON", found=str(error)[:80]) from error


def decode_json_object(line: str | bytes) -> dict[str, Any]:
    """Returns the object of a line.

    Raises:
        CorruptError: It is no JSON object, or nests too deep.
    """
    value = decode_json_line(line)
    if not isinstance(value, dict):
        raise CorruptError("json-line", expected="an object", found=type(value).__name__)
    return value
