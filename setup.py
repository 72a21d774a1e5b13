"""What pyproject.toml cannot say: the C sources of the kernels are those of one folder."""

from __future__ import annotations

from pathlib import Path

from setuptools import Extension, setup

KERNELS = Path("seglog/storage/kernels")

# Where it cannot be compiled the Python kernels serve. `make kernels` makes every warning an error.
setup(
    ext_modules=[
        Extension(
            "seglog.storage.kernels._native",
            sources=sorted(map(str, KERNELS.glob("native/*.c"))),
            depends=[str(KERNELS / "layout.h"), *sorted(map(str, KERNELS.glob("native/*.h")))],
            optional=True,
            py_limited_api=True,
        )
    ]
)
