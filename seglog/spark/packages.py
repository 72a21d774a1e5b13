"""The Python packages and versions that Spark jobs need."""

from __future__ import annotations

import sys
from importlib import metadata
from typing import Final

from seglog.errors import MissingDependencyError

PYSPARK_HELP: Final = "install PySpark with `pip install 'seglog[spark]'`"
_NEEDED: Final = {"pyspark": ((4, 1), (5,)), "pandas": ((2, 2), (3,)), "pyarrow": ((17,), None)}
"""Lowest version of each package, and the first that is too new; the same as in pyproject.toml."""


def pyspark_problem() -> str | None:
    """Returns which Python package is missing or has a wrong version; None if all are installed."""
    for name, (lowest, too_new) in _NEEDED.items():
        version = _version(name)
        if version is None:
            return f"the Python package {name} is not installed"
        numbers = tuple(int(part) for part in version.split(".")[:2] if part.isdigit())
        if numbers < lowest or (too_new is not None and numbers >= too_new):
            wanted = f"at least {'.'.join(map(str, lowest))}"
            if too_new is not None:
                wanted += f" and below {'.'.join(map(str, too_new))}"
            return f"the Python package {name} is {version}, but has to be {wanted}"
    return None


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        # The PySpark of an unpacked Spark, which `spark-submit` runs, is not an installed package.
        version = getattr(sys.modules.get(name), "__version__", None)
        return version if isinstance(version, str) else None


def require_packages() -> None:
    """Raises an error unless PySpark and the packages that it needs are installed.

    Raises:
        MissingDependencyError: One is missing or has a wrong version.
    """
    problem = pyspark_problem()
    if problem is not None:
        raise MissingDependencyError(problem, help=PYSPARK_HELP)
