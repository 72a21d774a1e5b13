"""The lines that commands print with ``--json``: every kind and every field, from one table.

The table is in ``json_lines/*.toml``, one file for each room of commands. The JSON Schema that ``seglog
version --json-schema`` prints and ``docs/json.md`` are generated from it. The table itself is written by hand
from the code that prints the lines; the tests of the command line compare each printed line with it. A field
is ``"TYPE | UNIT | TEXT"``, or ``"TYPE | TEXT"`` without a unit; a ``?`` after its name means that the field
may be missing. TYPE is a type of JSON Schema, ``any``, ``class`` for the name of a Python class, ``[TYPE]``
for arrays, ``{TYPE}`` for objects with any names, or ``@NAME`` for an object of ``[objects.NAME]``; ``/``
separates alternative types. ``shared`` names fields of ``[fields]``, in ``shared.toml``, that the kind has
too.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Final

JSON_VERSION: Final = 1
"""Increased when a kind or a field is removed or changed; new kinds and new fields do not increase it."""
JSON_UNITS: Final = {"ms": "ms since 1970 UTC"}
"""Meaning of a unit of the table; units that are not listed are written out in the table."""
ERROR: Final = "error"
"""The kind in the table for errors on stderr; in the printed line ``kind`` is the class of the error."""

_FOLDER: Final = "json_lines"
_DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"
_OBJECT: Final = "object"
_CLASS: Final = "class"

Schema = dict[str, object]


@dataclass(frozen=True, slots=True)
class JsonField:
    """A field of a line, or of an object within one.

    Attributes:
        type: Its type, as the table writes it.
        unit: What a number counts; empty if it needs no unit.
        text: One sentence.
        is_optional: Whether it may be missing.
    """

    name: str
    type: str
    unit: str
    text: str
    is_optional: bool

    def schema(self) -> Schema:
        """Returns the field as JSON Schema."""
        said = f"{self.text} ({JSON_UNITS.get(self.unit, self.unit)})" if self.unit else self.text
        return {"description": said, **_type_schema(self.type)}


@dataclass(frozen=True, slots=True)
class JsonKind:
    """A kind of lines.

    Attributes:
        about: One sentence.
        commands: The commands that print it, by their names after ``seglog``.
        fields: Its fields, without ``kind``.
    """

    name: str
    about: str
    commands: tuple[str, ...]
    fields: tuple[JsonField, ...]


@dataclass(frozen=True, slots=True)
class JsonTable:
    """All kinds of lines, and the objects within their fields, by name."""

    kinds: Mapping[str, JsonKind]
    objects: Mapping[str, tuple[JsonField, ...]]

    def schema(self) -> Schema:
        """Returns the JSON Schema (draft 2020-12) of a line; ``$defs`` has the schema of each kind."""
        shapes = {f"@{name}": _object_schema(fields) for name, fields in sorted(self.objects.items())}
        kinds = {name: _kind_schema(kind) for name, kind in sorted(self.kinds.items())}
        return {
            "$schema": _DIALECT,
            "title": f"A line of seglog --json, version {JSON_VERSION}",
            "oneOf": [{"$ref": f"#/$defs/{name}"} for name in kinds],
            "$defs": kinds | shapes,
        }


@cache
def json_table() -> JsonTable:
    """Returns the table, read once from the files of the package."""
    files = [
        file for file in (resources.files(__package__) / _FOLDER).iterdir() if file.name.endswith(".toml")
    ]
    read = [tomllib.loads(file.read_text("utf-8")) for file in sorted(files, key=lambda file: file.name)]
    shared = {field.name: field for one in read for field in _fields(one.get("fields", {}))}
    kinds = {name: _kind(name, row, shared) for one in read for name, row in one.get("kinds", {}).items()}
    objects = {name: tuple(_fields(row)) for one in read for name, row in one.get("objects", {}).items()}
    return JsonTable(kinds, objects)


def _kind(name: str, row: Mapping[str, object], shared: Mapping[str, JsonField]) -> JsonKind:
    own = row.get("own", {})
    assert isinstance(own, dict)
    taken = [shared[field] for field in str(row.get("shared", "")).split()]
    commands = tuple(" ".join(str(row["commands"]).split()).split(", "))
    return JsonKind(name, str(row["about"]), commands, (*taken, *_fields(own)))


def _fields(rows: Mapping[str, str]) -> Iterator[JsonField]:
    for name, said in rows.items():
        kind, *unit, text = said.split(" | ")
        yield JsonField(name.removesuffix("?"), kind, "".join(unit), text, name.endswith("?"))


def _kind_schema(kind: JsonKind) -> Schema:
    found = _object_schema(kind.fields)
    if kind.name == ERROR:
        return {"description": kind.about, **found}
    named: Schema = {"kind": {"const": kind.name}}
    properties, required = found["properties"], found["required"]
    assert isinstance(properties, dict)
    assert isinstance(required, list)
    whole = {**found, "properties": named | properties, "required": ["kind", *required]}
    return {"description": kind.about, **whole}


def _object_schema(fields: tuple[JsonField, ...]) -> Schema:
    return {
        "type": _OBJECT,
        "properties": {field.name: field.schema() for field in fields},
        "required": [field.name for field in fields if not field.is_optional],
        "additionalProperties": False,
    }


def _type_schema(kind: str) -> Schema:
    """Returns a type of the table as JSON Schema."""
    choices = [_one_type_schema(one) for one in kind.split("/")]
    names = [choice["type"] for choice in choices if choice.keys() == {"type"}]
    if len(choices) == 1:
        return choices[0]
    return {"type": names} if len(names) == len(choices) else {"anyOf": choices}


def _one_type_schema(kind: str) -> Schema:
    if kind == "any":
        return {}
    if kind == _CLASS:
        return {"type": "string", "pattern": "^[A-Z]"}
    if kind[0] == "[":
        return {"type": "array", "items": _type_schema(kind[1:-1])}
    if kind[0] == "{":
        return {"type": _OBJECT, "additionalProperties": _type_schema(kind[1:-1])}
    if kind[0] == "@":
        return {"$ref": f"#/$defs/{kind}"}
    return {"type": kind}
