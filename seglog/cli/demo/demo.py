"""``seglog demo``: runs the whole engine in a temporary folder, and checks each claim by counting."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import click

from seglog.cli.demo import demo_recovery, demo_steps
from seglog.cli.demo.demo_steps import Outcome
from seglog.cli.read.get import check_range
from seglog.cli.ui import options, render
from seglog.cli.ui.version import package_version
from seglog.errors import SeglogError, StoreError
from seglog.storage.files import explain_os_error
from seglog.text import shell_text

DEFAULT_MESSAGES: Final = 200_000
_MARKS: Final = {True: ("✓", "green"), False: ("✗", "red"), None: ("–", "yellow")}


@dataclass(frozen=True, slots=True)
class Step:
    """A step: its name for programs, its title for people, and its function."""

    name: str
    title: str
    run: Callable[[Path, int, render.Tell], Outcome]


STEPS: Final = (
    Step(
        "write",
        f"{demo_steps.THREADS} threads send {{count}} messages to {len(demo_steps.TOPICS)} topics of"
        f" {demo_steps.QUEUES} queues, with tags and keys",
        demo_steps.write,
    ),
    Step(
        "consume",
        f"{demo_steps.CONSUMERS} orderly consumers lock the queues, pull, process one at a time and commit",
        demo_steps.consume,
    ),
    Step(
        "crash",
        "A process that syncs every message to the disk is killed with SIGKILL while it writes",
        demo_recovery.crash,
    ),
    Step(
        "rocketmq",
        "A store directory that Apache RocketMQ 5.4.0 wrote is opened read-only",
        demo_recovery.read_rocketmq,
    ),
    Step(
        "audit",
        "A Spark job checks every record and every queue of the store (Spark takes a while to start)",
        demo_recovery.audit,
    ),
)


@click.command
@click.option(
    "--dir",
    "folder",
    type=click.Path(path_type=Path),
    help="New folder to work in.  [default: a temporary one]",
)
@click.option(
    "--messages", "count", type=int, default=DEFAULT_MESSAGES, show_default=True, help="How many to send."
)
@click.option("--keep", is_flag=True, help="Leave the stores behind, to look at them.")
@options.as_json
def command(*, folder: Path | None, count: int, keep: bool, as_json: bool) -> None:
    """Show everything at work: write, consume, crash, recover, read RocketMQ's files, audit.

    Ends with 1 if anything is wrong.
    """
    check_range("--messages", count)
    place = _make_folder(folder)
    try:
        is_right = _run(place, count, as_json=as_json)
    finally:
        if not keep:
            shutil.rmtree(place, ignore_errors=True)
    if keep and not as_json:
        render.say(f"  look around: seglog info {shell_text(place / 'store')}")
    if not is_right:
        raise click.exceptions.Exit(1)


def _make_folder(folder: Path | None) -> Path:
    if folder is None:
        return Path(tempfile.mkdtemp(prefix="seglog-demo-"))
    if folder.exists():
        raise StoreError(f"{folder} exists already", help="give a folder that does not exist yet")
    folder.mkdir(parents=True)
    return folder


def _run(place: Path, count: int, *, as_json: bool) -> bool:
    """Runs the steps, prints the outcome of each, and returns whether none failed."""
    begun_s = time.monotonic()
    if not as_json:
        render.say(f"seglog {package_version('seglog') or ''} demo in {place}")
        render.say()
    outcomes: list[Outcome] = []
    for number, step in enumerate(STEPS, 1):
        if not as_json:
            render.say(f"{number}. {step.title.format(count=render.count_text(count))}")
        outcome = _outcome(step, place / "store", count)
        outcomes.append(outcome)
        if as_json:
            render.emit(
                {
                    "kind": "step",
                    "step": number,
                    "name": step.name,
                    "ok": outcome.ok,
                    "text": outcome.text,
                    **outcome.facts,
                }
            )
        else:
            render.say("   ", _mark(outcome.ok), f" {outcome.text}")
    _summarise(outcomes, time.monotonic() - begun_s, place, as_json=as_json)
    return all(outcome.ok is not False for outcome in outcomes)


def _outcome(step: Step, root: Path, count: int) -> Outcome:
    try:
        with render.progress(step.name, unit="messages") as tell:
            return step.run(root, count, tell)
    except SeglogError as error:
        return Outcome(False, f"{type(error).__name__}: {error}")
    except OSError as error:
        return Outcome(False, str(explain_os_error(error)))


def _summarise(outcomes: list[Outcome], seconds: float, place: Path, *, as_json: bool) -> None:
    passed, failed, left_out = (sum(outcome.ok is ok for outcome in outcomes) for ok in (True, False, None))
    if as_json:
        fields = {"passed": passed, "failed": failed, "leftOut": left_out, "seconds": round(seconds, 3)}
        render.emit({"kind": "summary", "ok": not failed, **fields, "path": str(place)})
        return
    text = (
        f"{render.count_text(passed, 'step')} passed"
        if not failed
        else f"{failed} of {passed + failed} steps FAILED"
    )
    rest = f", {left_out} left out" if left_out else ""
    render.say()
    render.say(_mark(not failed), f" {text}{rest}, in {seconds:.1f} s")


def _mark(ok: bool | None) -> render.Styled:
    return render.Styled(*_MARKS[ok])
