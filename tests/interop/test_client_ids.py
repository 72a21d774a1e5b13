"""Clients are called here what RocketMQ's own client with the same settings is called."""

from __future__ import annotations

import itertools
import os
import re

import pytest

from seglog.client.links.client_ids import named_client_id
from tests.interop.judging.judge import Judge
from tests.support.rows import every_row

pytestmark = pytest.mark.interop


def without_life(client_id, process_id):
    """Returns an id with what is another one in each life made one."""
    return re.sub(rf"@{process_id}#\w+", "@process#life", client_id)


def test_an_id_is_that_of_javas_client(judge: Judge):
    settings = itertools.product((None, "DEFAULT", "till-7", "a@b"), (None, "", " ", "north"), (False, True))
    with every_row() as row:
        for name, unit, keeps_its_name in settings:
            with row(name, unit, keeps_its_name):
                theirs, address, process_id = judge.client_id(name, unit, broadcasts=keeps_its_name)
                ours = named_client_id(address, name, unit, keeps_its_name=keeps_its_name)
                assert without_life(ours, os.getpid()) == without_life(theirs, process_id)
