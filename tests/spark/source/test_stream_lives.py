"""Random lives of a store: a stream gives every message once, or names it as lost."""

from __future__ import annotations

import pytest

from tests.support.scale import scaled
from tests.support.stream_lives import Life

LIVES = scaled(200, 2000)
PARTS = 10


@pytest.mark.parametrize("part", range(PARTS))
def test_every_message_is_given_once_or_named_as_lost(tmp_path, part):
    for seed in range(part, LIVES, PARTS):
        life = Life(tmp_path / str(seed), seed)
        try:
            life.run(12)
            life.assert_accounted()
        finally:
            life.close()
