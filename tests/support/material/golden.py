"""The golden stores: real RocketMQ directories, with what the real store served from each.

They are packed in ``tests/golden`` (made by ``tools/pack-golden``). ``d-*`` are damaged copies of
``roll``, ``roll-halt`` and ``propcrc``; ``-halt`` means that the writer was killed. Damaged or not,
``roll`` says what was in a store before the damage: RocketMQ often serves less than is intact.
"""

from __future__ import annotations

import functools
import hashlib
import io
import json
import lzma
import os
import tarfile
import tempfile
from pathlib import Path
from typing import Any, Final

from tests.support.machine.shared import copy_tree, once
from tests.support.material.archives import filtered

_GOLDEN: Final = Path(__file__).resolve().parents[2] / "golden"
_CHUNK_BYTES: Final = 1 << 20
_LONG_BYTES: Final = 16 << 20
_ZEROS: Final = bytes(_CHUNK_BYTES)


def golden_names(*, damaged: bool | None = None) -> list[str]:
    """Returns the stores that the real store opened and answered for, by name.

    Args:
        damaged: True for the damaged copies (``d-*``) only, False for the intact ones, None for all.
    """
    return sorted(
        name
        for members in _index().values()
        for name, answered in members.items()
        if answered and (damaged is None or damaged == name.startswith("d-"))
    )


def config_names() -> list[str]:
    """Returns the whole broker directories that have no answers, but every config file there is."""
    return sorted(name for members in _index().values() for name, answered in members.items() if not answered)


def shared(name: str) -> Path:
    """Returns a store that all tests of a run share, unpacked once: for reading only.

    Args:
        name: One of :func:`golden_names` or :func:`config_names`.

    Raises:
        LookupError: No such store.
    """
    return once(f"golden {_family(name)}", lambda folder: _unpack_family(_family(name), folder)) / name


def extract(name: str, dest: Path) -> Path:
    """Copies a store, holes and all, to ``dest / name`` and returns that folder.

    Args:
        name: One of :func:`golden_names` or :func:`config_names`.
        dest: Existing folder; must not hold ``name`` yet.

    Raises:
        FileExistsError: ``dest / name`` exists.
        LookupError: No such store.
    """
    return copy_tree(shared(name), dest / name)


def expected(name: str) -> list[dict[str, Any]]:
    """Returns what the real store served after opening: the lines of ``after-open.jsonl``, parsed.

    Raises:
        LookupError: No such store, or one without answers.
    """
    return [json.loads(line) for line in _answer(name, "after-open.jsonl").splitlines()]


def meta(name: str) -> dict[str, Any]:
    """Returns how the store was made; ``before`` holds size and SHA-256 by file.

    Raises:
        LookupError: No such store.
    """
    parsed: dict[str, Any] = json.loads(_answer(name, "meta.json"))
    return parsed


def tree_digest(path: Path, *, is_exact: bool = False) -> dict[str, tuple[int, str]]:
    """Returns size and SHA-256 by file (``/`` between parts, relative to ``path``); holes are not read.

    Folders count too, as ``name/`` with size -1, so that an empty folder that comes or goes shows.

    Args:
        path: The folder.
        is_exact: Whether the SHA-256 of a long file is of all its bytes, and not of those alone that are in
            chunks that are not all zeros. A key index of the usual length is 420 MB of zeros.
    """
    return {
        f"{entry.relative_to(path).as_posix()}/" if entry.is_dir() else entry.relative_to(path).as_posix(): (
            (-1, "") if entry.is_dir() else (entry.stat().st_size, _sha256(entry, is_exact=is_exact))
        )
        for entry in sorted(path.rglob("*"))
    }


def file_digest(path: Path, *, is_exact: bool = False) -> dict[str, tuple[int, str]]:
    """Returns :func:`tree_digest` without the folders; if exact, as ``before`` of :func:`meta` is."""
    found = tree_digest(path, is_exact=is_exact)
    return {name: digest for name, digest in found.items() if not name.endswith("/")}


def _sha256(path: Path, *, is_exact: bool) -> str:
    digest = hashlib.sha256()
    with path.open("rb", buffering=0) as file:
        size_bytes = os.fstat(file.fileno()).st_size
        is_long = size_bytes > _LONG_BYTES and not is_exact
        at = 0
        while at < size_bytes:
            data_at, data_end = _next_data(file.fileno(), at, size_bytes)
            if is_long:
                # Chunks begin at multiples of their length, so that it does not matter where holes are.
                data_at -= data_at % _CHUNK_BYTES
                data_end = min(size_bytes, -(-data_end // _CHUNK_BYTES) * _CHUNK_BYTES)
            else:
                for hole_at in range(at, data_at, _CHUNK_BYTES):
                    digest.update(memoryview(_ZEROS)[: min(_CHUNK_BYTES, data_at - hole_at)])
            for chunk_at in range(data_at, data_end, _CHUNK_BYTES):
                chunk = os.pread(file.fileno(), min(_CHUNK_BYTES, data_end - chunk_at), chunk_at)
                if not is_long:
                    digest.update(chunk)
                elif chunk != memoryview(_ZEROS)[: len(chunk)]:
                    digest.update(b"%d:" % chunk_at + chunk)
            at = data_end
    return digest.hexdigest()


def _next_data(fd: int, at: int, size_bytes: int) -> tuple[int, int]:
    """Returns where data starts at or after ``at`` and where it ends; both are the size in a last hole."""
    try:
        data_at = os.lseek(fd, at, os.SEEK_DATA)
    except OSError:  # ENXIO: nothing but a hole is left
        return size_bytes, size_bytes
    return min(data_at, size_bytes), min(os.lseek(fd, data_at, os.SEEK_HOLE), size_bytes)


@functools.cache
def _index() -> dict[str, dict[str, bool]]:
    parsed: dict[str, dict[str, bool]] = json.loads((_GOLDEN / "index.json").read_text())
    return parsed


def _family(name: str) -> str:
    for family, members in _index().items():
        if name in members:
            return family
    raise LookupError(f"no golden store {name!r}; there are {', '.join(golden_names() + config_names())}")


def _unpack_family(family: str, folder: Path) -> None:
    plain = lzma.decompress((_GOLDEN / f"{family}.stores.tar.xz").read_bytes())
    with (
        tempfile.TemporaryDirectory(dir=folder) as unpacked,
        filtered(tarfile.open(fileobj=io.BytesIO(plain))) as archive,
    ):
        archive.extractall(unpacked)  # noqa: S202 - our own archive, filtered
        for store in Path(unpacked).iterdir():
            copy_tree(store, folder / store.name)  # with holes, which the next copies need not read


# The answers of a family are unpacked once, not once for each of its thirty stores.
@functools.lru_cache(maxsize=3)
def _answers(family: str) -> tarfile.TarFile:
    plain = lzma.decompress((_GOLDEN / f"{family}.answers.tar.xz").read_bytes())
    return filtered(tarfile.open(fileobj=io.BytesIO(plain)))  # lives as long as the cache keeps it


def _answer(name: str, file: str) -> str:
    archive = _answers(_family(name))
    try:
        stream = archive.extractfile(f"{name}/{file}")
    except KeyError:
        raise LookupError(f"golden store {name!r} has no {file}") from None
    assert stream is not None
    return stream.read().decode()
