"""``seglog doctor``: all steps for a store that does not start: check, trial on a branch, repair.

It runs ``check``, ``branch``, ``repair`` and ``undo`` in this order. Each step prints its result, and nothing
in the store changes before the user typed the store's name. Without a terminal it asks nothing and changes
nothing.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import click

from seglog.cli.doctor.repair import dry_run, show_done, show_plan
from seglog.cli.ui import options, render
from seglog.cli.ui.confirm import demand_person, is_agreed, is_typed
from seglog.clock import SystemClock
from seglog.doctor.check import check_store, ending_of_check, verdict_facts
from seglog.doctor.copies import branch_names, branch_path, drop_branch, make_backup
from seglog.doctor.repair import judge, repair_store, wrong_now
from seglog.errors import Ending, SeglogError
from seglog.storage.directory import FileSizes
from seglog.text import shell_line

_TRIAL: Final = "doctor"
"""Name of the branch for the trial; a number is added if the name is taken."""


@click.command
@options.store
@click.option("--yes", "is_sure", is_flag=True, help="Ask nothing: repair a branch, then STORE.")
@click.option("--no-trial", is_flag=True, help="Repair STORE without a trial on a branch of it.")
@options.file_sizes
def command(*, path: Path, is_sure: bool, no_trial: bool, given: FileSizes) -> None:
    """Check STORE, try the repair on a branch, and repair STORE after a confirmation.

    The steps are those of `seglog check`, `seglog repair` and `seglog undo`, which say more. STORE must not
    be open: stop the broker first. A branch shares the files of STORE, takes little room, and STORE stays as
    it is until its name was typed, or --yes given.

    \b
    Exit codes:
      0  nothing is wrong (any more)
      1  nothing was changed; a repair puts all right without loss
      2  answers are needed, and there is no terminal
      5  nothing was changed; messages are lost, or cannot be read
      6  something is left that no repair puts right
    """  # noqa: D301 - click takes the character itself
    _step(1, "what is wrong")
    report = check_store(path, follow=options.followed(path), log=options.log_paths())
    render.facts(verdict_facts(report, path))
    render.say(f"all that was found: {shell_line(['seglog', 'check', path])}")
    if report.is_clean:
        return
    _step(2, "what a repair does")
    plan = dry_run(path, given)
    judge(plan, report)
    show_plan(plan, is_sound=False)
    if not plan.actions and not plan.first:
        raise click.exceptions.Exit(Ending.LEFT)
    if not is_sure:
        demand_person()
    trial = "" if no_trial else _try_out(path, given, is_sure=is_sure)
    if trial is None:
        raise click.exceptions.Exit(ending_of_check(report))
    _step(4, "the repair")
    if not is_sure and not _is_agreed(path, trial):
        raise click.exceptions.Exit(ending_of_check(report))
    if trial:
        drop_branch(options.writing(path), path, trial)
    raise click.exceptions.Exit(_repair(path, given))


def _is_agreed(path: Path, trial: str) -> bool:
    """Asks for the store's name; where it is not given, what was repaired for the trial is named."""
    name, is_given = path.resolve().name, False
    try:
        is_given = is_typed(f'type "{name}" to repair it', name)
    finally:
        if not is_given:
            render.say("nothing was changed" + (f"; {_kept_branch(path, trial)}" if trial else ""))
    return is_given


def _step(number: int, what: str) -> None:
    if number > 1:
        render.say()
    render.say(render.Styled(f"{number}. {what}"))


def _try_out(path: Path, given: FileSizes, *, is_sure: bool) -> str | None:
    """Repairs a branch; returns its name, "" without a trial, None if the store must not be repaired."""
    _step(3, "a trial on a branch")
    if not is_sure and not is_agreed("try the repair on a branch of the store first?", default=True):
        return ""
    files = options.writing(path)
    taken = set(branch_names(files, path))
    name = next(name for number in range(len(taken) + 1) if (name := f"{_TRIAL}{number or ''}") not in taken)
    branch = branch_path(path, name)
    make_backup(files, path, branch, others=files)
    try:
        is_put_right = _repair(branch, given) is Ending.CLEAN
    except SeglogError as error:
        drop_branch(files, path, name)
        plain = shell_line(["seglog", "doctor", "--no-trial", path])
        error.help = f"{path} was not changed, the branch is removed; `{plain}` repairs without a trial"
        raise
    if is_put_right:
        render.say("a check of the repaired branch finds nothing wrong")
    else:
        render.say(f"the repair does not put all right; the branch is {branch}")
    if is_sure or is_agreed("continue with the store itself?", default=is_put_right):
        return name
    render.say(f"nothing was changed; {_kept_branch(path, name)}")
    return None


def _kept_branch(path: Path, name: str) -> str:
    """Returns a sentence on a branch that is left, which has no record of its start for `branch diff`."""
    branch = branch_path(path, name)
    check = shell_line(["seglog", "check", branch])
    drop = shell_line(["seglog", "branch", "drop", "--apply", path, name])
    return f"the repaired branch is {branch}: `{check}` checks it, `{drop}` removes it"


def _repair(path: Path, given: FileSizes) -> Ending:
    """Repairs a store or a branch without asking; returns whether findings are left."""
    plan, pack = repair_store(options.writing(path), path, SystemClock(), lambda _plan: True, given)
    plan.left = wrong_now(path, options.followed(path), options.log_paths())
    show_done(plan, pack, path)
    return Ending.LEFT if plan.left else Ending.CLEAN
