"""Stores that tests of the doctor damage copies of."""

from __future__ import annotations

import pytest


@pytest.fixture(scope="module")
def stores(tmp_path_factory):
    """Each kind of store, made once."""
    made = {}

    def get(make):
        if make not in made:
            made[make] = make(tmp_path_factory.mktemp(make.__name__) / "store")
        return made[make]

    return get
