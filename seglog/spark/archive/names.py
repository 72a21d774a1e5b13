"""Which name a store has in an archive: the one that was given, or that of what it continues."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from seglog.errors import InvalidArgumentError, NotFoundError, StoreMismatchError
from seglog.spark.archive.folder import Key
from seglog.spark.archive.manifest import Run, check_store_name

_FALLBACK: Final = "store"


def names_of_stores(runs: Sequence[Run]) -> list[str]:
    """Returns the names of the stores of an archive, sorted; none of one of the first layout."""
    return sorted({run.name for run in runs if run.name is not None})


def check_has_names(runs: Sequence[Run], folder: Path) -> None:
    """Refuses to add to an archive of the first layout: nothing in it says of which store it is.

    Raises:
        InvalidArgumentError: It is one.
    """
    if any(run.store is None for run in runs):
        raise InvalidArgumentError(
            f"{folder} is an archive of the first layout, which does not say of which store it is",
            help="`seglog spark restore` reads it as it is; archive into another folder from now on",
        )


def check_new_name(given: str, runs: Sequence[Run]) -> None:
    """Does nothing to a name that a store of an archive has, or can be given.

    Raises:
        InvalidArgumentError: The name cannot be, or would be taken for that of another store.
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
    """Returns the name of a store in an archive, and what ``check`` says of it.

    Without a name that was given it is the only store of the archive, or the one of several that it
    continues; the first store of an archive is called as its folder.

    Args:
        given: The name that was asked for.
        runs: All runs of the archive.
        root: The store directory.
        check: Raises where the store does not continue runs of one name.

    Raises:
        InvalidArgumentError: The name cannot be, or several stores of the archive are continued.
        StoreMismatchError: The store does not continue what the archive has under its name.
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
    """Returns which store of an archive is to be restored; None of one of the first layout.

    Raises:
        InvalidArgumentError: There are several, and none was named.
        NotFoundError: There is none of that name.
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
    """Returns the number that a name of a folder is read as, itself where it is none."""
    try:
        return float(name)
    except ValueError:
        return name


def _name_of_folder(root: Path) -> str:
    try:
        return check_store_name(root.absolute().name)
    except InvalidArgumentError:
        return _FALLBACK
