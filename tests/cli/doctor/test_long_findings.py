"""What a file says is cut in the text of a finding only: a program gets it as it is."""

from __future__ import annotations

import json

from click.testing import CliRunner

from seglog.cli.main import commands
from seglog.storage.findings.finding_text import MOST_QUOTED
from seglog.storage.store import MessageStore
from tests.support.material.stores import SMALL, new_clock


def found_in_table(path, value):
    """What a check of a store with a table that holds a value says of it, to programs and to people."""
    table = path / "config" / "topics.json"
    table.parent.mkdir(exist_ok=True)
    table.write_text(json.dumps({"topicConfigTable": value}))
    of_json = CliRunner().invoke(commands, ["check", "--json", str(path)]).stdout.splitlines()
    (found,) = [one["found"] for one in map(json.loads, of_json) if one.get("code") == "config-shape"]
    lines = CliRunner().invoke(commands, ["check", str(path)]).stdout.splitlines()
    (shown,) = [line.partition(", found ")[2] for line in lines if "config-shape" in line]
    return found, shown


def test_programs_get_a_long_value_whole_and_people_its_beginning(tmp_path):
    MessageStore.open(tmp_path, clock=new_clock(), **SMALL).close()
    long = "x\x1b[31m" * 100
    found, shown = found_in_table(tmp_path, long)
    assert found == repr(long)
    assert len(shown) == 81
    assert shown == f"{found[:80]}…"
    assert found_in_table(tmp_path, "short") == (repr("short"), repr("short"))


def test_a_value_without_end_is_cut_for_programs_too(tmp_path):
    MessageStore.open(tmp_path, clock=new_clock(), **SMALL).close()
    found, _shown = found_in_table(tmp_path, "x" * (1 << 20))
    assert len(found) == MOST_QUOTED
