"""Which kernels run: the native ones where they can be loaded, unless the environment forces others."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from seglog.errors import InvalidArgumentError, MissingDependencyError
from seglog.storage.kernels import NATIVE, PYTHON, choose_kernels
from tests.support.machine.kernels import BOTH, native


@pytest.fixture
def missing(monkeypatch):
    """As if the extension had never been built."""
    monkeypatch.setitem(sys.modules, "seglog.storage.kernels._native", None)


def test_native_kernels_run_where_they_can_be_loaded():
    native()
    assert (choose_kernels(""), choose_kernels(NATIVE), choose_kernels(PYTHON)) == (NATIVE, NATIVE, PYTHON)


@pytest.mark.usefixtures("missing")
def test_without_native_kernels_the_python_ones_serve():
    assert (choose_kernels(""), choose_kernels(PYTHON)) == (PYTHON, PYTHON)


@pytest.mark.usefixtures("missing")
def test_native_kernels_that_are_asked_for_and_missing_are_an_error():
    with pytest.raises(MissingDependencyError, match="SEGLOG_KERNEL is native, but") as raised:
        choose_kernels(NATIVE)
    assert "C compiler" in raised.value.help


def test_an_extension_older_than_its_sources_says_so(tmp_path):
    """The extension is as if it had been compiled before ``walk`` was written, for a process of its own."""
    native()
    code = (
        "import importlib, seglog.errors\n"
        "from seglog.storage.kernels import _native\n"
        "del _native.walk\n"
        "try:\n"
        "    importlib.import_module('seglog.storage.kernels.walk')\n"
        "except seglog.errors.MissingDependencyError as error:\n"
        "    print(error, error.help, hasattr(_native, 'walk'))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | {"SEGLOG_KERNEL": NATIVE},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert "lack 'walk'" in done.stdout
    assert "`pip install -e .`" in done.stdout
    assert done.stdout.endswith("False\n")


def test_unknown_kernels_are_an_error():
    with pytest.raises(InvalidArgumentError, match="SEGLOG_KERNEL is 'fortran'"):
        choose_kernels("fortran")


@pytest.mark.parametrize("kernels", BOTH)
def test_the_environment_forces_one(kernels: str):
    native()
    code = (
        "import json, seglog.storage.kernels as k; from seglog.storage.kernels import walk;"
        "print(json.dumps([k.KERNELS, walk.native_walk is not None, walk.native_find is not None]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | {"SEGLOG_KERNEL": kernels},
        capture_output=True,
        check=True,
    )
    assert json.loads(done.stdout) == [kernels, kernels == NATIVE, kernels == NATIVE]
