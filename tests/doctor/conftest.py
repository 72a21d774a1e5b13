"""Stores that tests of the doctor damage copies of."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import pytest

MakeStore: TypeAlias = Callable[[Path], Path]


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> Callable[[MakeStore], Path]:
    """Each kind of store, made once."""
    made: dict[MakeStore, Path] = {}

    def get(make: MakeStore) -> Path:
        if make not in made:
            made[make] = make(tmp_path_factory.mktemp(make.__name__) / "store")
        return made[make]

    return get
