"""``seglog doctor``: the whole dialogue, on a real terminal, and what it refuses without one."""

from __future__ import annotations

import pytest
from click import unstyle

from seglog.errors import ConfigError, Ending, StoreLockedError
from seglog.storage.store import MessageStore
from tests.support.command_line import Seglog
from tests.support.command_line.screen import on_screen
from tests.support.material import golden


@pytest.fixture
def hole(tmp_path):
    return golden.extract("d-zeropage-first", tmp_path)


def _typed(root, answers, *options):
    shown = on_screen(["doctor", *options, str(root)], 200, stdin=answers.encode())
    return shown.exit_code, unstyle(shown.text)


def test_a_store_is_repaired_once_the_trial_was_seen_and_its_name_typed(seglog: Seglog, hole):
    before = golden.file_digest(hole)
    ending, said = _typed(hole, f"y\ny\n{hole.name}\n")
    assert ending == Ending.CLEAN, said
    after = golden.file_digest(hole)
    steps = ["1. what is wrong", "2. what a repair does", "3. a trial on a branch", "4. the repair"]
    assert [line for line in said.splitlines() if line in steps] == steps
    assert "lost      10 messages for good" in said
    assert "a check of the repaired branch finds nothing wrong" in said
    assert f"done; `seglog undo {hole}` takes it back (undo pack 1)" in said
    assert seglog("check", hole).exit_code == Ending.CLEAN
    assert seglog("branch", "list", hole).stdout == "no branches\n"
    assert seglog("branch", "create", hole, "mine").exit_code == 0  # a store of its own
    assert seglog("undo", hole).exit_code == 0
    found = golden.file_digest(hole)
    assert {name: found[name] for name in before} == before
    assert after != before


@pytest.mark.parametrize("answers", ["y\nn\n", "y\ny\nother\n"], ids=["after the trial", "by another name"])
def test_who_does_not_go_on_has_the_store_as_it_was_and_the_branch(seglog: Seglog, hole, answers):
    before = golden.file_digest(hole)
    ending, said = _typed(hole, answers)
    assert ending == Ending.LOSS, said
    assert "nothing was changed" in said
    assert {name: one for name, one in golden.file_digest(hole).items() if name in before} == before
    branch = hole / "seglog/branches/doctor"
    flat = "".join(said.split())
    assert f"`seglog check {branch}` checks it".replace(" ", "") in flat
    assert f"`seglog branch drop --apply {hole} doctor` removes it".replace(" ", "") in flat
    assert seglog("check", branch).exit_code == Ending.CLEAN
    refused = seglog("branch", "diff", hole, "doctor")
    assert refused.exit_code == ConfigError.exit_code
    assert f"seglog check {branch}" in refused.stderr
    assert seglog("branch", "drop", "--apply", hole, "doctor").exit_code == Ending.CLEAN
    assert not branch.exists()


def test_without_a_trial_only_the_name_is_asked_for(seglog: Seglog, hole):
    ending, said = _typed(hole, f"{hole.name}\n", "--no-trial")
    assert (ending, "branch" in said.replace("RocketMQ", "")) == (Ending.CLEAN, False), said
    assert seglog("check", hole).exit_code == Ending.CLEAN


def test_yes_asks_nothing_and_a_second_trial_takes_another_name(seglog: Seglog, hole):
    assert seglog("branch", "create", hole, "doctor").exit_code == 0
    done = seglog("doctor", hole, "--yes")
    assert done.exit_code == Ending.CLEAN, done.stdout
    assert [line["name"] for line in seglog("branch", "list", hole, "--json").lines] == ["doctor"]


def test_without_a_terminal_nothing_is_asked_and_nothing_done(seglog: Seglog, hole):
    before = golden.tree_digest(hole)
    refused = seglog("doctor", hole)
    assert refused.exit_code == Ending.USAGE
    assert "standard input is no terminal; --yes asks nothing" in refused.stderr
    assert golden.tree_digest(hole) == before


def test_a_sound_store_needs_no_doctor(seglog: Seglog, tmp_path):
    root = golden.extract("roll", tmp_path)
    shown = seglog("doctor", root)
    assert (shown.exit_code, "repair    nothing to do" in shown.stdout) == (Ending.CLEAN, True)
    assert "2." not in shown.stdout


def test_an_open_store_is_left_alone(seglog: Seglog, hole):
    with MessageStore.open(hole):
        refused = seglog("doctor", hole, "--yes")
    assert refused.exit_code == StoreLockedError.exit_code
    assert "stop it, then run this again" in refused.stderr


def test_what_no_repair_changes_ends_with_6(seglog: Seglog, hole):
    assert seglog("doctor", "--yes", "--no-trial", hole).exit_code == Ending.CLEAN
    (hole / "seglog" / "undo" / "2").symlink_to("elsewhere")
    shown = seglog("doctor", hole, "--yes")
    assert shown.exit_code == Ending.LEFT, shown.stdout
    assert "nothing to do: no repair can put right what is left" in shown.stdout
