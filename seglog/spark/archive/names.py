"""Chooses the name of a store in an archive: the given name, or the name of the store that it continues."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from seglog.errors import InvalidArgumentError, NotFoundError, StoreMismatchError
from seglog.spark.archive.folder import Key
from seglog.spark.archive.manifest import Run, check_store_name

_FALLBACK: Final = "store"


def names_of_stores(runs: Sequence[Run]) -> list[str]:
    """Returns the names of the stores of an archive, sorted; empty for an archive of the first layout."""
    return sorted({run.name for run in runs if run.name is not None})


def check_has_names(runs: Sequence[Run], folder: Path) -> None:
    """Refuses to add to an archive of the first layout, because it does not identify its store.

    Raises:
        InvalidArgumentError: The archive has the first layout.
    """
    if any(run.store is None for run in runs):
        raise InvalidArgumentError(
            f"{folder} is an archive of the first layout, which does not say of which store it is",
            help="`seglog spark restore` reads it as it is; archive into another folder from now on",
        )


def check_new_name(given: str, runs: Sequence[Run]) -> None:
    """Checks that a store of an archive has, or can have, a name.

    Raises:
        InvalidArgumentError: The name is not valid, or would be read as the name of another store.
    """
    known = names_of_stores(runs)
    check_store_name(given)
    twin = next((name for name in known if name != given and name.casefold() == given.casefold()), None)
    if twin is not None:
        raise InvalidArgumentError(
            f"the archive has a store {twin!r}, which some file systems take for {given!r}",
            help="give --as another name",
        )
    same = next((name for name in known if name != given and _number(name) == _number(given)), None)
    if same is not None:
        raise InvalidArgumentError(
            f"the archive has a store {same!r}, and Spark takes folders of {given!r} for the same number",
            help="give --as a name that is no number",
        )


def place_in_archive(
    given: str | None, runs: Sequence[Run], root: Path, check: Callable[[Sequence[Run]], dict[Key, int]]
) -> tuple[str, dict[Key, int]]:
    """Returns the name of a store in an archive, and the result of ``check``.

    Without a given name it is the name of the only store of the archive, or of the one of several that the
    store continues; the first store of an archive gets the name of its folder.

    Args:
        given: The name that the caller requested, or None.
        runs: All runs of the archive.
        root: The store directory.
        check: Raises an error if the store does not continue runs of one name.

    Raises:
        InvalidArgumentError: The name is not valid, or the store continues several stores of the archive.
        StoreMismatchError: The store does not continue the archived messages of its name.
    """
    known = names_of_stores(runs)
    if given is not None:
        check_new_name(given, runs)
    elif not known:
        given = _name_of_folder(root)
    elif len(known) == 1:
        given = known[0]
    else:
        return _continued(known, runs, check)
    own = [run for run in runs if run.name == given]
    return given, check(own) if own else {}


def choose_store(given: str | None, runs: Sequence[Run], folder: Path) -> str | None:
    """Returns the name of the store to restore; None for an archive of the first layout.

    Raises:
        InvalidArgumentError: There are several stores, and none was named.
        NotFoundError: There is no store of that name.
    """
    known = names_of_stores(runs)
    if given is None and len(known) > 1:
        raise InvalidArgumentError(
            f"{folder} has {len(known)} stores: {', '.join(known)}", help="name one with --store NAME"
        )
    if given is not None and given not in known:
        raise NotFoundError(
            f"{folder} has no store {given!r}", help=f"it has {', '.join(known) or 'none that has a name'}"
        )
    return given if given is not None else known[0] if known else None


def _continued(
    known: Sequence[str], runs: Sequence[Run], check: Callable[[Sequence[Run]], dict[Key, int]]
) -> tuple[str, dict[Key, int]]:
    found: list[tuple[str, dict[Key, int]]] = []
    refusals: list[StoreMismatchError] = []
    for name in known:
        try:
            found.append((name, check([run for run in runs if run.name == name])))
        except StoreMismatchError as error:
            refusals.append(error)
    if not found:
        raise StoreMismatchError(
            f"the store continues none of {', '.join(known)}: {refusals[0]}", help=refusals[0].help
        )
    if len(found) > 1:
        raise InvalidArgumentError(
            f"the store continues {' and '.join(name for name, _places in found)}",
            help="say with --as NAME which of them it is",
        )
    return found[0]


def _number(name: str) -> float | str:
    """Returns the number as which Spark would read a folder's name, or the name if it is no number."""
    try:
        return float(name)
    except ValueError:
        return name


def _name_of_folder(root: Path) -> str:
    try:
        return check_store_name(root.absolute().name)
    except InvalidArgumentError:
        return _FALLBACK
