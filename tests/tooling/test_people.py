"""What people who tried seglog stumbled over, and the tests that keep each of it mended."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import seglog
from seglog.cli.main import COMMANDS

TESTS = Path(__file__).resolve().parents[1]
FINDINGS = {
    "1: the demo and all help run in a plain install, without PySpark, Java or a compiler": [
        "cli/test_plain_install.py::test_every_command_has_help",
        "cli/test_plain_install.py::test_every_command_runs",
        "cli/test_plain_install.py::test_what_needs_more_says_in_one_line_how_to_get_it",
        "cli/test_plain_install.py::test_the_demo_leaves_the_spark_step_out_with_a_line",
        "tooling/test_scripts.py::test_without_root_the_run_goes_on_and_says_the_command_in_a_line",
    ],
    "2: eighty columns cut nothing": [
        "cli/ui/test_screens.py::test_no_line_is_longer_than_the_terminal_and_nothing_is_cut",
        "cli/ui/test_folded.py::test_no_line_is_too_long_and_every_character_is_there",
        "cli/admin/test_narrow_terminals.py",
    ],
    "3: a check begins with what RocketMQ does, what is lost and what a repair saves": [
        "cli/doctor/test_triage.py::test_check_begins_with_the_verdict",
        "cli/doctor/test_triage.py::test_a_lost_end_of_the_log_is_one_loss",
        "cli/doctor/test_triage.py::test_a_repair_saves_what_a_check_says_that_it_saves",
        "cli/doctor/test_check.py::test_a_loss_ends_with_5_and_says_what_it_means_and_what_to_type",
    ],
    "4: what a command line is expected to have": [
        "cli/doctor/test_export_import.py::test_the_ending_of_the_name_is_the_format_where_none_is_given",
        "cli/ui/test_screens.py::test_colours_are_left_out_where_they_are_not_wanted",
        "cli/test_main.py::test_the_option_version_shows_the_first_line_of_the_command",
        "cli/test_main.py::test_the_package_runs_as_a_module",
        "cli/test_main.py::test_a_command_that_is_not_there_names_the_one_that_was_meant",
        "cli/test_main.py::test_shells_complete_as_the_page_of_the_commands_says",
        "cli/test_main.py::test_every_command_comes_once_under_a_heading_of_the_help",
        "cli/doctor/test_repair.py::test_nothing_is_changed_if_the_name_was_not_typed",
        "tooling/test_man.py::test_every_command_has_a_page_and_groups_have_one_for_each_of_theirs",
    ],
    "5: fields of --json, zones of times, names of other tools": [
        "cli/test_json_kinds.py::test_every_kind_that_the_code_writes_is_in_the_table",
        "cli/test_json_kinds.py::test_the_page_has_a_section_for_each_kind_and_object",
        "cli/ui/test_render.py::test_a_time_says_its_zone",
        "tooling/test_people.py::test_mqadmins_names_lead_to_commands_that_there_are",
    ],
    "6: packages hold what they should, pages the API": [
        "tooling/test_site.py::test_every_public_name_is_in_the_reference_once",
        "tooling/test_links.py::test_links_of_a_page_lead_somewhere",
        "tooling/test_examples.py",
    ],
    "7: the API shows itself": [
        "test_errors.py::test_a_traceback_ends_with_the_advice_and_with_notes_that_were_added",
        "storage/directory/test_small.py",
        "tooling/test_readme.py::test_python_of_a_page_runs_in_the_order_of_reading_in_one_folder",
        "test_reprs.py::test_every_public_class_shows_more_than_its_address_in_memory",
        "storage/reads/test_get_async.py::test_a_get_waits_for_a_put_of_another_task",
        "storage/reads/test_follow.py::test_all_that_is_there_comes_in_order_and_then_it_ends",
        "test_arguments.py::test_a_store_names_the_argument_that_it_refuses",
        "tooling/test_people.py::test_pages_import_from_the_package_itself_what_it_exports",
    ],
    "8: a README that is short": ["tooling/test_people.py::test_the_readme_is_short"],
    "9: plain words": [
        "tooling/test_prose.py::test_prose_of_a_folder_has_none_of_the_words_that_were_given_up"
    ],
}


@pytest.mark.parametrize("finding", FINDINGS)
def test_the_tests_of_a_finding_are_there(finding):
    for name in FINDINGS[finding]:
        file, _, test = name.partition("::")
        tree = ast.parse((TESTS / file).read_text())
        tests = {each.name for each in tree.body if isinstance(each, ast.FunctionDef)}
        assert test in tests if test else any(each.startswith("test_") for each in tests), name


def test_the_readme_is_short():
    assert len((TESTS.parent / "README.md").read_text().splitlines()) < 170


def test_mqadmins_names_lead_to_commands_that_there_are():
    page = (TESTS.parent / "docs" / "cli.md").read_text()
    _before, _heading, table = page.partition("## Where you know mqadmin")
    rows = re.findall(r"^\| `(.+)` \| (.+) \|$", table.partition("\n## ")[0], re.MULTILINE)
    assert len(rows) > 12
    named = {name for _theirs, ours in rows for name in re.findall(r"`seglog (\S+)", ours)}
    assert named <= COMMANDS.keys()


def test_pages_import_from_the_package_itself_what_it_exports():
    pages = [
        TESTS.parent / "README.md",
        *(TESTS.parent / "docs").glob("*.md"),
        *(TESTS.parent / "examples").iterdir(),
    ]
    deep = [
        f"{page.name}: {name} from {module}"
        for page in pages
        if page.is_file()
        for module, names in re.findall(
            r"^from (seglog\.[\w.]+) import (.+)$", page.read_text(), re.MULTILINE
        )
        for name in re.findall(r"\w+", names.partition("#")[0])
        if name in seglog.__all__
    ]
    assert deep == []
