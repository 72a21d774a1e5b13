"""Random lives of a store: a stream gives every message once, or names it as lost."""

from __future__ import annotations

import pytest

from tests.support.scale import commit_seed, scaled
from tests.support.stream_lives import Life

LIVES = scaled(40, 2000)
OF_THE_COMMIT = scaled(10, 200)
PARTS = 10


@pytest.mark.sampled(6)
@pytest.mark.parametrize("part", range(PARTS))
def test_every_message_is_given_once_or_named_as_lost(tmp_path, part):
    # Some differ from day to day; the others find tomorrow what they find drawn.
    fixed = range(part, LIVES - OF_THE_COMMIT, PARTS)
    drawn = [f"{commit_seed()} {number}" for number in range(part, OF_THE_COMMIT, PARTS)]
    for seed in (*fixed, *drawn):
        life = Life(tmp_path / str(seed), seed)
        try:
            life.run(12)
            life.assert_accounted()
        except Exception as error:
            error.add_note(f"seed {seed}")
            raise
        finally:
            life.close()
