from __future__ import annotations

import itertools
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NoReturn

import pytest

from tests.interop.judging import toolchain
from tests.interop.judging.judge import Judge


@pytest.fixture(scope="session")
def judge() -> Iterator[Judge]:
    """The real store of RocketMQ 5.4.0, or of the version in SEGLOG_INTEROP_ROCKETMQ."""
    missing = toolchain.missing_tool()
    if missing is not None:
        _give_up(missing)
    with Judge(os.environ.get("SEGLOG_INTEROP_ROCKETMQ", toolchain.DEFAULT_VERSION)) as judge:
        try:
            judge.build()
        except toolchain.BuildError as error:
            _give_up(str(error))
        yield judge


def _give_up(reason: str) -> NoReturn:
    """Skips, except in CI: there a missing judge must not pass for a verdict."""
    if os.environ.get("CI"):
        pytest.fail(f"the interop tests cannot run: {reason}", pytrace=False)
    pytest.skip(reason)


@pytest.fixture
def copied(tmp_path: Path) -> Callable[[Path], Path]:
    """Copies a store directory, so that each engine gets its own; an open one as a kill leaves it."""
    numbers = itertools.count(1)

    def copy(path: Path) -> Path:
        twin = tmp_path / f"copy {next(numbers)} of {path.name[:20]}"
        # cp keeps files sparse; shutil would write a gigabyte of zeros.
        subprocess.run(["cp", "--recursive", "--sparse=always", path, twin], check=True)
        return twin

    return copy
