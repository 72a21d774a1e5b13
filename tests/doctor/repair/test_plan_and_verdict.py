"""What a plan of a repair counts is what the verdict of a check counts, in all and action by action."""

from __future__ import annotations

import shutil

from tests.support.damage.broker_damage import DAMAGES
from tests.support.damage.treatment import MAKERS, Said, damages_of, run, treated, whole
from tests.support.machine.shared import copy_tree
from tests.support.rows import every_row
from tests.support.scale import chance, scaled


def hold(check: Said, repair: Said) -> None:
    """Holds a plan, as JSON, against the verdict of a check of the same store."""
    verdict, plan = check.lines[-1]["verdict"], repair.plan
    assert (plan["saved"], plan["lost"]) == (verdict["repairSaves"], verdict["lostForGood"])
    saved = [(action["action"], action["saved"]) for action in repair.actions if action["saved"]]
    if plan["saved"]:
        assert saved, "messages are saved, and by no action"
        assert max(count for _action, count in saved) <= plan["saved"], saved
    else:
        assert saved == []
    if plan["lost"] is not None:
        lost = [one["count"] for action in repair.actions for one in action["lost"]]
        assert sum(lost) == plan["lost"]


def test_each_plan_saves_and_loses_what_the_verdict_says():
    """What no verdict counts, such as units of the timer log, no action has saved."""
    with every_row() as row:
        for name in DAMAGES:
            done = treated(name)
            if done.repair.lines:
                with row(name):
                    hold(done.before.check, done.repair)


def test_plans_for_several_damages_at_once_save_and_lose_what_the_verdict_says(tmp_path):
    dice = chance("plan and verdict")
    with every_row() as row:
        for _store in range(scaled(24, 3000)):
            make = dice.choice(MAKERS)
            names = damages_of(make)
            root = copy_tree(whole(make), tmp_path / "store")
            done = []
            for name in dice.sample(names, min(len(names), dice.choice((2, 3, 4)))):
                try:
                    DAMAGES[name][1](root)
                except (OSError, ValueError):  # another damage has taken away what this one changes
                    continue
                done.append(name)
            with row(*done):
                planned = run("repair", "--json", root)
                if planned[1]:
                    hold(Said(*run("check", "--json", root)), Said(*planned))
            shutil.rmtree(root)
