"""The request: the options of the source, and the messages that they and pushed filters select."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seglog.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from seglog.spark.source.wanted.paths import expand_paths, may_be_glob

__all__ = ["expand_paths", "may_be_glob"]

if not TYPE_CHECKING:  # a type checker would take any name for one of ours
    __getattr__ = lazy_exports(__name__, {"expand_paths": "paths", "may_be_glob": "paths"})
