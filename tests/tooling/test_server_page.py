"""The unit and the recipe of docs/server.md are well formed and start the server with its options."""

from __future__ import annotations

import configparser
import json
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import click
import pytest

from seglog.cli.serving import serve
from seglog.server.listening import is_loopback
from tests.support.machine.patience import patience_s
from tests.tooling.test_readme import fenced_blocks

PAGE = Path(__file__).resolve().parents[2] / "docs" / "server.md"
INSTRUCTIONS = {
    *("FROM", "COPY", "RUN", "USER", "VOLUME", "EXPOSE", "STOPSIGNAL", "ENTRYPOINT", "CMD"),
}


def block_of(language: str) -> str:
    """Returns the one block of a language."""
    (block,) = (one for one in fenced_blocks(PAGE.read_text()) if one.language == language)
    return block.text


def parsed(words: list[str]) -> dict[str, object]:
    """Returns the options of ``seglog serve`` as the command understands them."""
    assert isinstance(serve.command, click.Command)
    return dict(serve.command.make_context("serve", words).params)


def unit() -> configparser.ConfigParser:
    parser = configparser.ConfigParser(interpolation=None, strict=True)
    parser.optionxform = str  # type: ignore[assignment]  # names of units have capitals
    parser.read_string(block_of("ini"))
    return parser


def instructions() -> list[tuple[str, str]]:
    """Returns the instructions of the recipe with what they are given, lines that go on joined."""
    text = re.sub(r"\\\n\s*", "", block_of("dockerfile"))
    return [(line.partition(" ")[0], line.partition(" ")[2]) for line in text.splitlines() if line.strip()]


def test_the_unit_starts_the_server_on_loopback_with_options_that_it_has():
    service = unit()["Service"]
    program, command, *words = shlex.split(service["ExecStart"])
    assert (Path(program).name, command) == ("seglog", "serve")
    options = parsed(words)
    assert str(options["path"]).startswith(f"/var/lib/{service['StateDirectory']}/")
    assert is_loopback(str(options["host"]))
    assert not options["insecure"]


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not installed")
def test_systemd_finds_nothing_wrong_with_the_unit(tmp_path):
    path = tmp_path / "seglog-orders.service"
    # The program that the unit names is not installed here.
    path.write_text(block_of("ini").replace("/opt/seglog/bin/seglog", sys.executable))
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", path],
        capture_output=True,
        text=True,
        check=False,
        timeout=patience_s(60),
    )
    about = [line for line in done.stderr.splitlines() if path.name in line]
    assert about == []


def test_the_recipe_has_known_instructions_and_no_java():
    names = [name for name, _ in instructions()]
    assert names[0] == "FROM"
    assert set(names) <= INSTRUCTIONS
    assert names.count("ENTRYPOINT") == names.count("CMD") == 1
    assert not re.search(r"java|jre|jdk", block_of("dockerfile"), re.IGNORECASE)


def test_the_recipe_starts_the_server_with_options_that_it_has():
    given = dict(instructions())
    program, command, *words = json.loads(given["ENTRYPOINT"]) + json.loads(given["CMD"])
    assert (program, command) == ("seglog", "serve")
    options = parsed(words)
    assert (str(options["path"]), options["insecure"]) == (given["VOLUME"], True)
    assert options["advertise"] == f"127.0.0.1:{given['EXPOSE']}"
    assert str(options["port"]) == given["EXPOSE"]


def test_the_page_has_the_options_of_the_server_and_no_others():
    of_every_command = {"--follow", "--json"}
    assert isinstance(serve.command, click.Command)
    known = {name for one in serve.command.params for name in one.opts if name.startswith("--")}
    page = PAGE.read_text()
    of_table = set(re.findall(r"`(--[a-z-]+)", "".join(re.findall(r"^\| `--.*$", page, re.MULTILINE))))
    assert of_table <= known
    assert {name for name in known - of_every_command if name not in page} == set()


def test_the_steps_of_the_recipe_agree_with_its_copy_its_user_and_its_volume():
    given = dict(instructions())
    steps = [shlex.split(step) for step in given["RUN"].split("&&")]
    source = given["COPY"].split()[1]
    assert steps[0] == ["pip", "install", "--no-cache-dir", f"{source}[compression]"]
    assert steps[1] == ["rm", "-r", source]
    (maker,) = (step for step in steps if step[0] == "useradd")
    assert maker[-1] == given["USER"]
    assert ["install", "-d", "-o", given["USER"], given["VOLUME"]] in steps


def test_the_recipe_is_published_on_loopback_alone():
    (run,) = (line for line in PAGE.read_text().splitlines() if line.startswith("docker run"))
    words = shlex.split(run)
    published = words[words.index("--publish") + 1]
    host, outside, inside = published.split(":")
    assert is_loopback(host)
    assert f"{host}:{outside}" == json.loads(dict(instructions())["CMD"])[1]
    assert inside == dict(instructions())["EXPOSE"]
