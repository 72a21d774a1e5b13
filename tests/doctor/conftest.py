"""Stores that tests of the doctor damage copies of."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.material.stores import MakeStore, Stores


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> Stores:
    """Each kind of store, made once."""
    made: dict[MakeStore, Path] = {}

    def get(make: MakeStore) -> Path:
        if make not in made:
            made[make] = make(tmp_path_factory.mktemp(make.__name__) / "store")
        return made[make]

    return get
