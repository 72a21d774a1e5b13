"""What the fields of JSON bodies hold: tables from which reading and writing follow.

Reading is as lenient as fastjson: a number may stand in quotes (clients in C++ write it so), true may be
text, a field that is not known is passed over, and one that is absent or null has its default.
"""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, Generic, NamedTuple, TypeVar

from seglog.errors import CorruptError, ProtocolError
from seglog.remoting.body_json.dialects import ObjectKey, write_json
from seglog.storage.format.config import ConfigValue, decode_config

T = TypeVar("T")


class Form(NamedTuple, Generic[T]):
    """How values of one kind stand in JSON.

    Attributes:
        encode: Value to JSON.
        decode: JSON and what it is called in errors, to the value; ProtocolError if it is none.
    """

    encode: Callable[[T], ConfigValue]
    decode: Callable[[ConfigValue, str], T]


def _decode_text(found: ConfigValue, name: str) -> str:
    if isinstance(found, str):
        return found
    if isinstance(found, bool):
        return "true" if found else "false"
    if isinstance(found, int | float):
        return str(found)
    raise refusal(name, "text", found)


def _decode_bool(found: ConfigValue, name: str) -> bool:
    if isinstance(found, bool):
        return found
    if isinstance(found, str) and found.lower() in ("true", "false"):
        return found.lower() == "true"
    raise refusal(name, "true or false", found)


def _decode_float(found: ConfigValue, name: str) -> float:
    try:
        return float(found) if isinstance(found, int | float | str) else float("nan")
    except (ValueError, OverflowError) as error:
        raise refusal(name, "a number", found) from error


def _decode_object(found: ConfigValue, name: str) -> Mapping[str | int, ConfigValue]:
    if isinstance(found, Mapping):
        return found
    raise refusal(name, "an object", found)


def whole(bits: int) -> Form[int]:
    """Returns the form of a whole number of so many bits."""
    end = 1 << (bits - 1)

    def decode(found: ConfigValue, name: str) -> int:
        if isinstance(found, str) and found.isascii() and found.lstrip("-").isdigit() and len(found) <= 20:
            found = int(found)
        if isinstance(found, bool) or not isinstance(found, int) or not -end <= found < end:
            raise refusal(name, f"a whole number of {bits} bits", found)
        return found

    return Form(int, decode)


TEXT: Final = Form[str](str, _decode_text)
BOOL: Final = Form[bool](bool, _decode_bool)
FLOAT: Final = Form[float](float, _decode_float)
INT32: Final = whole(32)
INT64: Final = whole(64)
ANY: Final = Form[ConfigValue](lambda value: value, lambda found, _name: found)
OBJECT: Final = Form[Mapping[str | int, ConfigValue]](lambda value: value, _decode_object)


def member_of(kind: type[enum.Enum]) -> Form[Any]:
    """Returns the form of an enumeration whose values are Java's names, in Java's order."""
    members = {str(one.value): one for one in kind}
    name_of = named(*members)

    def decode(found: ConfigValue, name: str) -> enum.Enum:
        found_name = name_of.decode(found, name)
        if found_name not in members:
            raise refusal(name, "one of " + ", ".join(members), found)
        return members[found_name]

    return Form(lambda value: value.value, decode)


def named(*names: str) -> Form[str]:
    """Returns the form of a name, for which its number may stand (clients in C++ write it so).

    Args:
        names: Those that have a number, in the order of Java's enumeration; another name is left as it is.
    """

    def decode(found: ConfigValue, name: str) -> str:
        if isinstance(found, int) and not isinstance(found, bool):
            if not 0 <= found < len(names):
                raise refusal(name, f"one of {', '.join(names)}, or its number", found)
            return names[found]
        return TEXT.decode(found, name)

    return Form(str, decode)


def items_of(
    form: Form[Any], kind: Callable[[Iterable[Any]], Any], order: Callable[[Any], Any] | None = None
) -> Form[Any]:
    """Returns the form of a list.

    Args:
        form: Of its items.
        kind: What is made of them: ``tuple`` or ``frozenset``.
        order: Key by which they are sorted before they are written; None leaves them as they are.
    """

    def encode(values: Iterable[Any]) -> ConfigValue:
        return [form.encode(value) for value in (values if order is None else sorted(values, key=order))]

    def decode(found: ConfigValue, name: str) -> object:
        if not isinstance(found, list):
            raise refusal(name, "a list", found)
        return kind(form.decode(item, name) for item in found)

    return Form(encode, decode)


def entries_of(key: Form[Any], value: Form[Any]) -> Form[Any]:
    """Returns the form of a map; its entries are written in their order."""

    def encode(values: Mapping[Any, Any]) -> ConfigValue:
        return {_encode_key(key.encode(name)): value.encode(item) for name, item in values.items()}

    def decode(found: ConfigValue, name: str) -> object:
        if not isinstance(found, Mapping):
            raise refusal(name, "an object", found)
        return {
            key.decode(_decode_key(one), f"a key of {name}"): value.decode(item, name)
            for one, item in found.items()
        }

    return Form(encode, decode)


def _encode_key(key: ConfigValue) -> str | int:
    return key if isinstance(key, str | int) else ObjectKey(write_json(key))


def _decode_key(key: str | int) -> ConfigValue:
    if isinstance(key, str) and key.startswith("{"):
        try:
            return decode_config(key)
        except CorruptError:
            return key  # a name that begins so, as far as one can know
    return key


class JsonField(NamedTuple):
    """A member of an object: its name in JSON, and the form of what it holds."""

    name: str
    form: Form[Any]


def object_of(
    kind: type[T], derived: Callable[[T], Mapping[str, ConfigValue]] | None = None, **fields: JsonField
) -> Form[T]:
    """Returns the form of an object; what is None is not written, as by fastjson.

    Args:
        kind: A dataclass.
        derived: Further members, which follow from the value and are not read.
        fields: Where its attributes stand; members are written by name.

    Raises:
        TypeError: ``kind`` has no such attribute.
    """
    attributes = {field.name: field for field in dataclasses.fields(kind)}  # type: ignore[arg-type]
    if not fields.keys() <= attributes.keys():
        raise TypeError(f"{kind.__name__} has no {sorted(fields.keys() - attributes.keys())}")

    def encode(value: T) -> ConfigValue:
        found = {
            field.name: field.form.encode(item)
            for attribute, field in fields.items()
            if (item := getattr(value, attribute)) is not None
        }
        if derived is not None:
            found |= derived(value)
        return {name: found[name] for name in sorted(found)}

    def decode(found: ConfigValue, name: str) -> T:
        if not isinstance(found, Mapping):
            raise refusal(name, "an object", found)
        values: dict[str, Any] = {}
        for attribute, field in fields.items():
            item = found.get(field.name)
            if item is not None:
                values[attribute] = field.form.decode(item, field.name)
            elif _is_required(attributes[attribute]):
                raise ProtocolError(f"{name} has no {field.name}")
        return kind(**values)

    return Form(encode, decode)


def _is_required(field: dataclasses.Field[Any]) -> bool:
    return field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING


def refusal(name: str, expected: str, found: object) -> ProtocolError:
    """Returns the error of a member that holds something else."""
    return ProtocolError(f"{name} of a body is {str(found)[:60]!r}, expected {expected}")
