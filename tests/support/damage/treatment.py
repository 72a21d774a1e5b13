"""What becomes of a damaged store: checked, planned, repaired, checked again and undone, once for all tests.

Each row of ``DAMAGES`` and each golden store is treated by the first test of a run that asks for it; the
others read what was said. The order is that of an operator: a check, a dry run, the repair, both again, a
message put to the repaired store, and the undo.
"""

from __future__ import annotations

import functools
import json
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from click.testing import CliRunner

from seglog.cli.main import commands
from seglog.doctor.check.check import check_store
from seglog.doctor.check.check_report import CheckReport
from seglog.doctor.undo.undo import undo_repair
from seglog.storage.files.files import RealFiles
from seglog.storage.findings.code import Severity
from seglog.storage.findings.finding_codes import CODES
from tests.support.damage.broker_damage import DAMAGES
from tests.support.machine.memory_folder import room_in_memory
from tests.support.machine.shared import content_digest, copy_tree, once, value_once
from tests.support.material import golden
from tests.support.material.stores import MakeStore, new_clock
from tests.support.scale import chance, is_gate

MAKERS: Final[tuple[MakeStore, ...]] = tuple(
    dict.fromkeys(make for make, _damage, _codes in DAMAGES.values())
)
"""A test of all damages has a case for each: those of a whole broker directory take half a minute."""


@dataclass(frozen=True)
class Said:
    """What a command printed and how it ended."""

    exit_code: int
    stdout: str

    @property
    def lines(self) -> list[dict[str, Any]]:
        """Its output as JSON, line by line."""
        return [json.loads(line) for line in self.stdout.splitlines()]

    @property
    def findings(self) -> list[dict[str, Any]]:
        """The findings of ``check --json``."""
        return [line for line in self.lines if line["kind"] == "finding"]

    @property
    def codes(self) -> set[str]:
        """The codes of the findings of ``check --json``."""
        return {finding["code"] for finding in self.findings}

    @property
    def wrong(self) -> set[str]:
        """The codes that are no notes."""
        return {code for code in self.codes if CODES[code].severity is not Severity.NOTE}

    @property
    def actions(self) -> list[dict[str, Any]]:
        """The actions of ``repair --json``."""
        return [line for line in self.lines if line["kind"] == "action"]

    @property
    def plan(self) -> dict[str, Any]:
        """The last line but the preview of ``repair --json``: what it saves, loses and leaves."""
        (plan,) = [line for line in self.lines if line["kind"] == "plan"]
        return plan

    @property
    def steps(self) -> set[str]:
        """What the numbered lines of a plan say is done."""
        lines = [line.lstrip() for line in self.stdout.splitlines() if line.startswith("  ")]
        numbered = [line for line in lines if line.partition(". ")[0].isdigit()]
        return {line.partition(". ")[2].partition(":")[0] for line in numbered}


@dataclass(frozen=True)
class Judged:
    """What ``check --json`` and a dry run of ``repair`` say of a store in one state.

    Attributes:
        dry_run: None where the gate leaves it out.
    """

    check: Said
    dry_run: Said | None


@dataclass(frozen=True)
class Treatment:
    """What was said and done.

    Attributes:
        before: Of the damaged store.
        changed: Names of files that the check, or the dry run, changed.
        repair: ``repair --apply --yes --json``.
        written: Names of files that the repair changed.
        repaired: Of each file of the repaired store: kind, mode, length and digest.
        after: Of the repaired store.
        put: Where the repair ended well: a message put to the repaired store.
        last: Of the store with that message.
        not_undone: Names of files that the undo did not give back.
    """

    before: Judged
    changed: set[str]
    repair: Said
    written: set[str]
    repaired: dict[str, str]
    after: Judged
    put: Said | None
    last: Judged | None
    not_undone: set[str]


def run(*arguments: object) -> tuple[int, str]:
    """Calls the command line; returns the exit code and what it printed."""
    ran = CliRunner().invoke(commands, [str(argument) for argument in arguments])
    assert ran.exit_code != 70, ran.output
    return ran.exit_code, ran.stdout


def judged(root: Path, *, is_planned: bool = True) -> Judged:
    """Asks a check and a dry run of a repair."""
    check = Said(*run("check", "--json", root))
    return Judged(check, Said(*run("repair", root)) if is_planned else None)


def treat(root: Path, *options: str, is_planned_at_end: bool = True) -> Treatment:
    """Treats the store in a folder, and leaves it as the undo does.

    Args:
        root: The store.
        options: Of the repair.
        is_planned_at_end: Whether also the store with one more message is asked what a repair would do.
    """
    damaged = content_digest(root)
    before = judged(root)
    changed = _differing(damaged, content_digest(root))
    repair = Said(*run("repair", "--apply", "--yes", "--json", *options, root))
    repaired = content_digest(root)
    after = judged(root)
    put, last = None, None
    if repair.exit_code == 0:
        written_to = copy_tree(root, root.with_name(f"{root.name}-written-to"))
        put = Said(*run("put", written_to, "Probe", "text"))
        last = judged(written_to, is_planned=is_planned_at_end)
        shutil.rmtree(written_to)
    if repair.lines and repair.plan["undo"] is not None:
        undo_repair(RealFiles(), root)
    not_undone = _differing(damaged, content_digest(root))
    written = _differing(damaged, repaired)
    return Treatment(before, changed, repair, written, repaired, after, put, last, not_undone)


def treated(name: str, *options: str) -> Treatment:
    """Returns what became of a golden store, or of a store with a damage of ``DAMAGES``.

    Args:
        name: Of the golden store or of the damage.
        options: Of the repair.
    """
    # Another look at each store costs as much as all others of it: the gate takes some.
    is_planned = not is_gate() or chance("treated", name).random() < 1 / 4

    def compute() -> Treatment:
        with tempfile.TemporaryDirectory(dir=room_in_memory()) as folder:
            root = damaged(name, Path(folder) / "store")
            return treat(root, *options, is_planned_at_end=is_planned)

    return value_once(f"treated {' '.join((name, *options))}", compute)


@functools.lru_cache(maxsize=128)
def checked(name: str) -> CheckReport:
    """Returns the report of a check of a golden store or of a store with a damage of ``DAMAGES``."""

    def compute() -> CheckReport:
        if name not in DAMAGES:
            return check_store(golden.shared(name), clock=new_clock())
        with tempfile.TemporaryDirectory(dir=room_in_memory()) as folder:
            return check_store(damaged(name, Path(folder) / "store"), clock=new_clock())

    return value_once(f"checked {name}", compute)


def damages_of(make: MakeStore) -> list[str]:
    """Returns the names of the damages that are done to the stores of a maker."""
    return [name for name, (of_store, _damage, _codes) in DAMAGES.items() if of_store is make]


def whole(make: MakeStore) -> Path:
    """Returns the store of a maker, made once for all tests of a run: for reading only."""
    return (
        once(f"made by {make.__module__}.{make.__qualname__}", lambda place: make(place / "store")) / "store"
    )


def damaged(name: str, root: Path) -> Path:
    """Copies a golden store, or makes a store with a damage of ``DAMAGES``, and returns its folder.

    Args:
        name: Of the golden store or of the damage.
        root: A folder that does not exist.
    """
    if name not in DAMAGES:
        return copy_tree(golden.shared(name), root)
    make, damage, _codes = DAMAGES[name]
    copy_tree(whole(make), root)
    damage(root)
    return root


def _differing(one: dict[str, str], other: dict[str, str]) -> set[str]:
    return {name for name, _content in one.items() ^ other.items()}
