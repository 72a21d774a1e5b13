"""The rooms of rooms.toml are the folders of the package, and their order is that of its imports."""

from __future__ import annotations

import ast
import subprocess
import sys
import tomllib
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from statistics import median

import pytest

from tests.support.machine.patience import patience_s

ROOT = Path(__file__).resolve().parents[2]
ROOMS = tomllib.loads((ROOT / "rooms.toml").read_text())
FOR_APPLICATIONS = {"seglog", "seglog.errors", "seglog.testing"}
"""What these export is for users, whichever of it rooms use."""
LONG = {
    f"seglog/storage/{name}.py"
    for name in ("store", "writes/writer", "survey/store_survey", "findings/finding_codes")
}


def module_name(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


MODULES = {module_name(path): path for path in sorted((ROOT / "seglog").rglob("*.py"))}
PACKAGES = {name for name, path in MODULES.items() if path.name == "__init__.py"}


@cache
def statements() -> dict[str, list[ast.Import | ast.ImportFrom]]:
    """Returns the imports of each module, wherever in it they stand; each is parsed once.

    Not made on import: each process that runs tests collects all.
    """
    return {
        name: [
            node
            for node in ast.walk(ast.parse(path.read_text()))
            if isinstance(node, ast.Import | ast.ImportFrom)
        ]
        for name, path in MODULES.items()
    }


def imports_of(name: str) -> set[str]:
    """Returns the modules of the package that a module imports."""
    found = set()
    for node in statements()[name]:
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "seglog":
            for alias in node.names:
                full = f"{node.module}.{alias.name}"
                found.add(full if full in MODULES else node.module)
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names if alias.name in MODULES}
    return found - {name}


@cache
def all_imports() -> dict[str, set[str]]:
    """Returns what each module imports."""
    return {name: imports_of(name) for name in MODULES}


def children(package: str, known: dict[str, Path]) -> set[str]:
    """Returns the names of what stands directly in a folder, as modules or as rooms with modules."""
    prefix = f"{package}."
    return {name[len(prefix) :].split(".")[0] for name in known if name.startswith(prefix)}


def misplaced(table: dict[str, dict[str, object]], known: dict[str, Path]) -> list[str]:
    """Returns in which room which module is missing, or stands without being listed."""
    wrong = []
    packages = {name for name, path in known.items() if path.name == "__init__.py" and children(name, known)}
    wrong += [f"{name} is no room of rooms.toml" for name in sorted(packages - table.keys())]
    wrong += [f"{name} of rooms.toml is no room" for name in sorted(table.keys() - packages)]
    for name in sorted(packages & table.keys()):
        room = table[name]
        floors = room.get("floors", [])
        assert isinstance(floors, list)
        listed = {part for floor in floors for part in floor.split(" | ")} | set(
            str(room.get("modules", "")).split()
        )
        here = children(name, known)
        wrong += [f"{name} lists {one}, which is not there" for one in sorted(listed - here)]
        wrong += [f"{name} does not list {one}" for one in sorted(here - listed)]
    return wrong


def test_every_module_stands_in_the_room_that_lists_it():
    assert misplaced(ROOMS, MODULES) == []


@pytest.mark.parametrize(
    ("module", "to"),
    [
        ("storage/files/latch.py", "storage/threads"),
        ("doctor/undo/undo_pack.py", "doctor"),
        ("broker/broker.py", "client"),
    ],
)
def test_a_module_in_another_room_is_named(module, to):
    source = ROOT / "seglog" / module
    moved = ROOT / "seglog" / to / source.name
    known = {name: path for name, path in MODULES.items() if path != source} | {module_name(moved): moved}
    assert len(known) == len(MODULES)
    wrong = misplaced(ROOMS, known)
    room = module_name(source).rpartition(".")[0]
    assert f"{room} lists {source.stem}, which is not there" in wrong
    assert f"seglog.{to.replace('/', '.')} does not list {source.stem}" in wrong


@pytest.mark.parametrize("tree", ["perf", "seglog", "tests"])
def test_no_folder_has_more_than_22_modules(tree):
    folders = {path.parent for path in (ROOT / tree).rglob("*.py")}
    crowded = {
        str(folder.relative_to(ROOT)): count
        for folder in folders
        if (count := sum(path.name not in {"__init__.py", "conftest.py"} for path in folder.glob("*.py")))
        > 22
    }
    assert crowded == {}


def test_modules_are_short():
    lengths = {path: len(path.read_text().splitlines()) for path in MODULES.values()}
    long = {str(path.relative_to(ROOT)): count for path, count in lengths.items() if count > 500}
    assert long.keys() <= LONG
    assert median(lengths.values()) < 130


def test_no_module_imports_itself_by_way_of_others():
    graph = {name: found - PACKAGES for name, found in all_imports().items() if name not in PACKAGES}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(f"a circle of imports: {error.args[1]}")


def top_of(name: str) -> str:
    """Returns the top room of a module, nothing for the package itself."""
    return name.partition(".")[2].partition(".")[0]


def is_inner(name: str) -> bool:
    """Returns whether a name stands in a room within a top room: others take it from that room."""
    depth = 4 if name.startswith("seglog.storage.format.") else 3
    return name.count(".") >= depth and not name.startswith("seglog.storage.kernels.")


def test_other_top_rooms_import_from_a_room_not_from_a_module_in_it():
    deep = [
        f"{name} imports {target}"
        for name, found in all_imports().items()
        for target in sorted(found - PACKAGES)
        if name != "seglog" and top_of(name) != top_of(target) and is_inner(target)
        if target.rpartition(".")[2] not in exported(target.rpartition(".")[0])
    ]
    assert deep == []


@cache
def exported(package: str) -> set[str]:
    """Returns the names that a package imports as themselves, or has in ``__all__``."""
    names: set[str] = set()
    for node in ast.parse(MODULES[package].read_text()).body:
        if isinstance(node, ast.ImportFrom):
            names |= {alias.name for alias in node.names if alias.asname == alias.name}
        elif isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            names |= set(ast.literal_eval(node.value))
    return names


def test_no_room_exports_another_thing_by_the_name_of_a_module_in_it():
    # `import a.b as m` and `from a import b` would give different things.
    hidden = {}
    for package in sorted(PACKAGES):
        modules_as_such = {
            alias.name
            for node in ast.parse(MODULES[package].read_text()).body
            if isinstance(node, ast.ImportFrom) and node.module == package
            for alias in node.names
        }
        if found := exported(package) & children(package, MODULES) - modules_as_such:
            hidden[package] = found
    assert hidden == {}


def test_a_room_exports_what_other_top_rooms_use_and_nothing_else():
    used: dict[str, set[str]] = {}
    for name, nodes in statements().items():
        for node in nodes:
            if not isinstance(node, ast.ImportFrom) or node.module not in PACKAGES or name == "seglog":
                continue
            if top_of(node.module) != top_of(name):
                used.setdefault(node.module, set()).update(alias.name for alias in node.names)
    idle = {
        package: unused
        for package in sorted(PACKAGES)
        if package not in FOR_APPLICATIONS and (unused := exported(package) - used.get(package, set()))
    }
    assert idle == {}


def test_what_is_written_from_the_table_is_up_to_date():
    command = [sys.executable, str(ROOT / "tools" / "render-rooms"), "--check"]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=patience_s(60))
    assert (done.returncode, done.stderr) == (0, "")


def test_every_room_of_tests_is_one_of_the_package():
    mirrored = ("storage", "doctor", "broker", "cli")
    strange = [
        str(folder.relative_to(ROOT))
        for top in mirrored
        for folder in sorted((ROOT / "tests" / top).rglob("*"))
        if folder.is_dir()
        and any(folder.glob("test_*.py"))
        and not (ROOT / "seglog" / folder.relative_to(ROOT / "tests")).is_dir()
    ]
    assert strange == []
