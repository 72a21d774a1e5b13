"""Damage to bytes and to directories, as hypothesis draws it; a damage never leaves things as they were."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

ALL_KINDS = ("flip", "cut", "drop", "double", "zero", "insert", "int")


def damaged_bytes(data: bytes, kinds: Sequence[str] = ALL_KINDS) -> st.SearchStrategy[bytes]:
    """One to four acts of damage on ``data``."""
    size = len(data)
    place = st.integers(0, max(0, size - 1))

    @st.composite
    def damage(draw: st.DrawFn) -> bytes:
        out = bytearray(data)
        for _ in range(draw(st.integers(1, 4))):
            start, length = draw(place), draw(st.integers(1, 40))
            stretch = out[start : start + length]
            match draw(st.sampled_from(kinds)):
                case "flip" if start < len(out):
                    out[start] ^= 1 << draw(st.integers(0, 7))
                case "cut":
                    del out[start:]
                case "drop":
                    del out[start : start + length]
                case "double":
                    out[start:start] = stretch
                case "zero":
                    out[start : start + length] = bytes(len(stretch))
                case "insert":
                    out[start:start] = draw(st.binary(min_size=1, max_size=8))
                case "int" if start + 4 <= len(out):
                    value = draw(st.sampled_from([0, 1, 91, 2**31 - 1, 2**31, 2**32 - 1, size, size + 1]))
                    out[start : start + 4] = value.to_bytes(4, "big")
        return bytes(out)

    return damage()


@dataclass(frozen=True)
class Blow:
    """One act of damage to a directory, to be applied to any copy of it.

    Attributes:
        kind: What is done.
        which: Chooses the file, as a share of all files.
        where: Chooses the place in it, as a share of its length.
        value: A length, a byte or another file, as the kind has it.
    """

    kind: str
    which: float
    where: float
    value: int

    def apply(self, root: Path) -> str:
        """Does it, and returns what was done."""
        files = sorted(path for path in root.rglob("*") if path.is_file())
        if not files:
            return "nothing left to damage"
        path = files[int(self.which * (len(files) - 1))]
        size = path.stat().st_size
        at = int(self.where * max(0, size - 1))
        _KINDS[self.kind](path, at, self.value, files)
        return f"{self.kind} {path.relative_to(root)} +{at} {self.value}"


def _rewrite(change: Callable[[bytearray, int, int], None]) -> Callable[[Path, int, int, list[Path]], None]:
    def rewrite(path: Path, at: int, value: int, _files: list[Path]) -> None:
        data = bytearray(path.read_bytes())
        change(data, at, value)
        path.write_bytes(data)

    return rewrite


def _flip(data: bytearray, at: int, value: int) -> None:
    if data:
        data[at] ^= 1 << value % 8


def _overwrite(data: bytearray, at: int, value: int) -> None:
    data[at : at + value] = bytes([value % 256]) * len(data[at : at + value])


def _zero(data: bytearray, at: int, value: int) -> None:
    data[at : at + value] = bytes(len(data[at : at + value]))


def _copy_within(data: bytearray, at: int, value: int) -> None:
    stretch = data[:value]
    data[at : at + len(stretch)] = stretch[: len(data) - at]


def _append(data: bytearray, _at: int, value: int) -> None:
    data += bytes([value % 256]) * value


def _rename(path: Path, _at: int, value: int, _files: list[Path]) -> None:
    names = [f"{value * 20:020d}", f"{value * 4096:020d}", "9" * 20, "x", path.name + ".bak"]
    target = path.with_name(names[value % len(names)])
    if not target.is_dir():
        path.replace(target)


def _over(path: Path, _at: int, value: int, files: list[Path]) -> None:
    other = files[value % len(files)]
    if other != path:
        shutil.copyfile(other, path)


_KINDS: dict[str, Callable[[Path, int, int, list[Path]], object]] = {
    "flip": _rewrite(_flip),
    "overwrite": _rewrite(_overwrite),
    "zero": _rewrite(_zero),
    "copy within": _rewrite(_copy_within),
    "cut": lambda path, at, _value, _files: path.write_bytes(path.read_bytes()[:at]),
    "empty": lambda path, _at, _value, _files: path.write_bytes(b""),
    "append": lambda path, _at, value, _files: path.write_bytes(
        path.read_bytes() + bytes([value % 256]) * value
    ),
    "delete": lambda path, _at, _value, _files: path.unlink(),
    "delete folder": lambda path, _at, _value, _files: shutil.rmtree(path.parent),
    "rename": _rename,
    "copy over": _over,
}


def blows(kinds: list[str] | None = None, **fixed: Any) -> st.SearchStrategy[list[Blow]]:
    """One to four acts of damage; small shares and values are drawn more often."""
    share = st.floats(0, 1)
    one = st.builds(
        Blow,
        kind=st.sampled_from(kinds or sorted(_KINDS)),
        which=fixed.get("which", share),
        where=share,
        value=st.integers(1, 300) | st.integers(1, 5000),
    )
    return st.lists(one, min_size=1, max_size=4)
