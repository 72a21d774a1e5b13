"""The golden table of shares is what RocketMQ's own classes say, of each release that clients can have."""

from __future__ import annotations

import json
import lzma
import os
import subprocess

import pytest

from tests.interop.judging import toolchain
from tests.interop.judging.judge import Judge
from tests.support.machine.patience import patience_s
from tests.support.material.allocations import GOLDEN, golden_groups, groups

pytestmark = pytest.mark.interop


@pytest.mark.parametrize("version", [toolchain.DEFAULT_VERSION, toolchain.NEWEST_VERSION])
def test_s4_13_javas_classes_make_the_golden_table_anew(judge: Judge, tmp_path, version):
    asked = list(groups())
    path = tmp_path / "questions"
    path.write_text("".join(json.dumps(group) + "\n" for group in asked))
    command = toolchain.command_line(toolchain.build(version), *toolchain.QUICK)
    command[-1] = "seglog.judge.Allocations"
    done = subprocess.run(
        [*command, path], capture_output=True, text=True, check=True, timeout=patience_s(60)
    )
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    found = [
        {name: group[name] for name in ("rooms", "configured", "virtualNodes")} | answer
        for group, answer in zip(asked, answers, strict=True)
    ]
    if os.environ.get("SEGLOG_WRITE_GOLDEN"):
        GOLDEN.write_bytes(write(found))
    assert found == golden_groups()


def write(rows):
    text = "".join(json.dumps(row, separators=(",", ":")) + "\n" for row in rows)
    return lzma.compress(text.encode(), preset=9 | lzma.PRESET_EXTREME)
