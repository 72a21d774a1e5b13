"""Names that a package exports, imported on first use."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping


def lazy_exports(package: str, homes: Mapping[str, str]) -> Callable[[str], object]:
    """Returns the ``__getattr__`` of a package whose modules have different requirements, such as PySpark.

    Args:
        package: Its name.
        homes: The module of the package that holds each name.
    """

    def find(name: str) -> object:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(importlib.import_module(f"{package}.{homes[name]}"), name)

    return find
