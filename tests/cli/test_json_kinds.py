"""The table of the lines of JSON has every kind, every kind is printed by a test, and the schema is one."""

from __future__ import annotations

import json
import re

import click
import pytest
from jsonschema import Draft202012Validator, ValidationError

from seglog.cli.main import commands
from seglog.cli.ui.json_kinds import JSON_VERSION, json_table
from tests.support.command_line import Seglog
from tests.support.command_line.json_lines import ROOT, check_line, check_lines, printed_by
from tests.support.material import golden

CLI = ROOT / "seglog" / "cli"


def test_every_kind_is_printed_by_a_test_that_exists():
    listed, elsewhere = printed_by(), printed_by("elsewhere")
    assert set(json_table().kinds) == {*listed, *elsewhere}
    assert not listed.keys() & elsewhere.keys()
    assert all(elsewhere.values())
    for test in listed.values():
        file, name = test.partition("[")[0].split("::")
        assert re.search(rf"def {name}\(", (ROOT / file).read_text()), test


def test_every_kind_that_the_code_writes_is_in_the_table():
    text = "\n".join(file.read_text() for file in CLI.rglob("*.py"))
    written = set(re.findall(r'"kind": "([a-z][A-Za-z-]*)"', text))
    assert len(written) > 80
    assert written - set(json_table().kinds) == set()


def command_of(words: str) -> click.Command:
    """Returns a command by its name; a group has none of another name."""
    context = click.Context(commands)
    found: click.Command = commands
    for word in words.partition(" --")[0].split():
        assert isinstance(found, click.Group), words
        one = found.get_command(context, word)
        assert one is not None, words
        found = one
    return found


def test_every_command_of_the_table_exists_and_takes_json():
    named = {command for kind in json_table().kinds.values() for command in kind.commands} - {"all"}
    assert len(named) > 60
    for words in named:
        found = command_of(words)
        options = {name for option in found.params for name in option.opts}
        assert {"--json", *re.findall(r"--[\w-]+", words)} <= options, words


def test_every_command_that_takes_json_is_in_the_table():
    named = {one.partition(" --")[0] for kind in json_table().kinds.values() for one in kind.commands}

    def walk(group: click.Group, before: str) -> None:
        for name in group.list_commands(click.Context(group)):
            found = command_of(f"{before}{name}")
            if isinstance(found, click.Group):
                walk(found, f"{before}{name} ")
            elif any("--json" in option.opts for option in found.params):
                taking.add(f"{before}{name}")

    taking: set[str] = set()
    walk(commands, "")
    assert len(taking) > 60
    assert taking - named == {"spark sql"}


def test_the_schema_is_one_and_takes_each_line_as_one_kind(seglog: Seglog):
    schema = json.loads(seglog("version", "--json-schema").stdout)
    Draft202012Validator.check_schema(schema)
    whole = Draft202012Validator(schema)
    (told,) = seglog("version", "--json").lines
    assert told["jsonVersion"] == JSON_VERSION
    whole.validate(told)
    error = json.loads(seglog("get", "nowhere", "T", 0, "--json").stderr)
    whole.validate(error)
    for wrong in (
        told | {"more": 1},
        {name: told[name] for name in told if name != "java"},
        error | {"kind": "x"},
    ):
        with pytest.raises(ValidationError):
            whole.validate(wrong)


def test_commands_that_look_at_files_print_their_kinds(seglog: Seglog, tmp_path):
    path = golden.extract("roll", tmp_path)
    looks = [
        ["checkpoint"],
        ["config", "show"],
        ["du"],
        ["queues"],
        ["segments"],
        ["info"],
        ["retention", "broker"],
    ]
    looks += [["log", "show"], ["log", "show"], ["cq", "show"], ["index", "show"]]
    more: list[list[object]] = [[]] * 7 + [["--at", 0], ["--at", 7], ["TopicA", 0], []]
    for words, rest in zip(looks, more, strict=True):
        assert seglog(*words, path, *rest, "--json").exit_code in (0, 1), words
    assert seglog("dump", golden.extract("empty", tmp_path), "--log", "--json").exit_code == 0
    batch = golden.extract("innerbatch", tmp_path)
    assert seglog("cq", "show", batch, "BCQTopic", 0, "--json").exit_code == 0


def test_commands_that_change_a_store_print_their_kinds(seglog: Seglog, tmp_path):
    path, rows = tmp_path / "s", tmp_path / "rows.jsonl"
    for words in (
        ["put", path, "T", "body"],
        ["topic", "create", path, "A"],
        ["topic", "alter", path, "A", "--queues", 3],
        ["topic", "alter", path, "A", "--queues", 3, "--apply"],
        ["group", "create", path, "g"],
        ["group", "alter", path, "g", "--retries", 3, "--apply"],
        ["group", "delete", path, "g", "--apply"],
        ["branch", "create", path, "b"],
        ["branch", "drop", path, "b", "--apply"],
        ["export", path, "-o", rows],
        ["import", tmp_path / "again", rows],
        ["seal", path],
    ):
        assert seglog(*words, "--json").exit_code == 0, words
    damaged = golden.extract("d-magic", tmp_path)
    assert seglog("repair", damaged, "--apply", "--yes", "--json").exit_code == 0
    assert seglog("undo", damaged, "--list", "--json").exit_code == 0


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ('{"kind":"part","part":"log","files":1,"fileBytes":1,"diskBytes":1,"more":1}', "not as"),
        ('{"kind":"part","part":"log","files":1,"fileBytes":1}', "not as"),
        ('{"kind":"part","part":"log","files":"1","fileBytes":1,"diskBytes":1}', "not as"),
        ('{"kind":"parts"}', "no kind"),
        ('{"part":"log"}', "no kind"),
        ("[]", "no object"),
    ],
)
def test_a_line_that_is_not_as_the_table_says_fails_its_test(line, problem):
    with pytest.raises(AssertionError, match=problem):
        check_line(line)
    with pytest.raises(AssertionError, match=problem):
        check_lines(["du", "s", "--json"], line, "")
    check_lines(["du", "s"], line, "")


def test_the_page_has_a_section_for_each_kind_and_object():
    page = (ROOT / "docs" / "json.md").read_text()
    sections = re.findall(r"^##+ (\S+)$", page, re.MULTILINE)
    assert sections == [*sorted(json_table().kinds), "Objects", *sorted(json_table().objects)]
