"""What pyproject.toml cannot say: sources of the kernels, the tag of their wheel, the page of the project."""

from __future__ import annotations

import re
import sysconfig
from pathlib import Path

from setuptools import Extension, setup

KERNELS = Path("seglog/storage/kernels")
SOURCES = sorted(map(str, KERNELS.glob("native/*.c")))

if not SOURCES:  # an optional extension of nothing would fail in silence
    raise SystemExit(f"{KERNELS} has no C sources")

# A build of Python without a GIL has no stable ABI: the Python kernels serve there.
HAS_STABLE_ABI = not sysconfig.get_config_var("Py_GIL_DISABLED")


def description() -> str:
    """Returns README as a package index shows it: no file is beside it, so a link to one becomes its path."""

    def path(link: re.Match[str]) -> str:
        shown, target = link.groups()
        return f"`{target}`" if shown == target else f"{shown} (`{target}`)"

    text = Path("README.md").read_text(encoding="utf-8")
    return re.sub(r"\[([^\]]+)\]\((?!https?:|#)([^)#\s]+)(?:#[^)\s]*)?\)", path, text)


# Where it cannot be compiled the Python kernels serve. `make kernels` makes every warning an error.
setup(
    long_description=description(),
    long_description_content_type="text/markdown",
    ext_modules=[
        Extension(
            "seglog.storage.kernels._native",
            sources=SOURCES,
            depends=[str(KERNELS / "layout.h"), *sorted(map(str, KERNELS.glob("native/*.h")))],
            extra_compile_args=["-g0"],
            optional=True,
            py_limited_api=True,
        )
    ]
    * HAS_STABLE_ABI,
    # One wheel for 3.11 and all that follow: the kernels keep to the stable ABI of 3.11 (python_api.h).
    options={"bdist_wheel": {"py_limited_api": "cp311"}} if HAS_STABLE_ABI else {},
)
