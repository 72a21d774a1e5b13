"""What pyproject.toml cannot say: the C sources of the kernels are those of one folder."""

from __future__ import annotations

from pathlib import Path

from setuptools import Extension, setup

KERNELS = Path("seglog/storage/kernels")
SOURCES = sorted(map(str, KERNELS.glob("native/*.c")))

if not SOURCES:  # an optional extension of nothing would fail in silence
    raise SystemExit(f"{KERNELS} has no C sources")

# Where it cannot be compiled the Python kernels serve. `make kernels` makes every warning an error.
setup(
    ext_modules=[
        Extension(
            "seglog.storage.kernels._native",
            sources=SOURCES,
            depends=[str(KERNELS / "layout.h"), *sorted(map(str, KERNELS.glob("native/*.h")))],
            optional=True,
            py_limited_api=True,
        )
    ]
)
