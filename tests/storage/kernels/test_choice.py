"""Which kernels run: the native ones where they can be loaded, unless the environment forces others."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import zlib
from pathlib import Path

import pytest

import seglog.storage.kernels
from seglog.errors import InvalidArgumentError, MissingDependencyError
from seglog.storage.kernels import INTERFACE, NATIVE, PYTHON, VARIABLE, choose_kernels
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


@pytest.fixture
def older(tmp_path):
    """Returns a folder with a copy of the package, whose extension was compiled for another interface."""
    package = Path(seglog.storage.kernels.__path__[0]).parents[1]
    shutil.copytree(package, tmp_path / "seglog", ignore=shutil.ignore_patterns("__pycache__", "*.so"))
    made = Path(str(native().__file__))
    image = made.read_bytes()
    assert image.count(INTERFACE.encode()) == 1
    target = tmp_path / made.relative_to(package.parent)
    target.write_bytes(image.replace(INTERFACE.encode(), b"0ld0ld00"))
    return tmp_path


def opened_store(folder, kernels):
    """Runs a process that opens a store, and returns how it ended."""
    code = (
        "import seglog\n"
        "from seglog.storage.kernels import KERNELS\n"
        "with seglog.MessageStore.open('store') as store:\n"
        "    print(KERNELS, store.put('T', b'body').queue_offset)"
    )
    environment = {name: value for name, value in os.environ.items() if name != VARIABLE}
    return subprocess.run(
        [sys.executable, "-c", code],
        env=environment | {"PYTHONPATH": str(folder)} | ({VARIABLE: kernels} if kernels else {}),
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )


def test_for_an_extension_of_other_sources_the_python_kernels_serve_with_one_warning(older):
    done = opened_store(older, "")
    assert (done.stdout, done.returncode) == ("python 0\n", 0)
    said = [line for line in done.stderr.splitlines() if "Warning" in line]
    assert len(said) == 1
    assert f"their interface is 0ld0ld00, expected {INTERFACE}" in said[0]
    assert "the Python kernels serve, which are slower; compile them again: `make kernels`" in said[0]
    assert "Traceback" not in done.stderr


def test_an_extension_of_other_sources_that_is_asked_for_is_an_error(older):
    done = opened_store(older, NATIVE)
    lines = done.stderr.splitlines()
    assert done.returncode == 1
    assert lines[-2].startswith(f"seglog.errors.MissingDependencyError: {VARIABLE} is native, but the native")
    assert lines[-1].startswith("help: compile them again: `make kernels` or `pip install -e .`")


def test_the_number_of_the_interface_follows_the_stub_and_the_layouts():
    """A change of either has `make docs` write another number, and kernels have to be compiled for it."""
    package = Path(seglog.storage.kernels.__path__[0])
    layout, line = (package / "layout.h").read_text().split("\n#define SEGLOG_INTERFACE ")
    said = (package / "_native.pyi").read_text() + layout
    assert f"{zlib.crc32(said.encode()):08x}" == INTERFACE, "run: make docs kernels"
    assert line == f'"{INTERFACE}"\n'
    assert native().INTERFACE == INTERFACE, "run: make kernels"


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


def test_the_native_kernels_are_loaded_once_in_a_process_another_load_gets_the_python_ones():
    native()
    code = (
        "import sys\n"
        "from seglog.storage.kernels import _native, choose_kernels\n"
        "assert choose_kernels('') == 'native'\n"
        "del sys.modules['seglog.storage.kernels._native']\n"
        "assert choose_kernels('') == 'python'\n"
        "try:\n"
        "    choose_kernels('native')\n"
        "except Exception as error:\n"
        "    print(error)\n"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "serve one interpreter of a process" in ran.stdout
