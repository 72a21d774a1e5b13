"""What brokers know clients by: an id as Java makes it of the same settings."""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from seglog.broker.broker import Broker
from seglog.client.connect import make_client
from seglog.client.links.addresses import own_address
from seglog.client.links.client_ids import named_client_id, new_client_id
from seglog.client.links.local_link import LocalLink
from seglog.clock import VirtualClock
from seglog.errors import InvalidArgumentError
from tests.support.brokers import open_broker
from tests.support.wrong_arguments import NO_TEXTS

LIFE = "PID#[0-9a-f]{12}"
"""PID is put in by tests: their names are the same in all processes that run them."""


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    with open_broker(tmp_path, VirtualClock()) as opened:
        yield opened


def test_client_ids_have_rocketmqs_form_and_differ():
    assert new_client_id("10.0.0.1", 42, "x") == "10.0.0.1@42#x"
    assert new_client_id() != new_client_id()


@pytest.mark.parametrize(
    ("settings", "shape"),
    [
        ({}, f"127.0.0.1@{LIFE}"),
        ({"instance_name": "till-7"}, "127.0.0.1@till-7"),
        ({"instance_name": "DEFAULT"}, f"127.0.0.1@{LIFE}"),
        ({"unit_name": "north"}, f"127.0.0.1@{LIFE}@north"),
        ({"instance_name": "till-7", "unit_name": "north"}, "127.0.0.1@till-7@north"),
        ({"unit_name": "  "}, f"127.0.0.1@{LIFE}"),
        ({"keeps_its_name": True}, "127.0.0.1@DEFAULT"),
        ({"keeps_its_name": True, "unit_name": "north"}, "127.0.0.1@DEFAULT@north"),
        ({"keeps_its_name": True, "instance_name": "till-7"}, "127.0.0.1@till-7"),
        ({"client_id": "of-my-own"}, "of-my-own"),
    ],
)
def test_an_id_is_made_of_the_settings_as_in_java(broker: Broker, settings, shape):
    with make_client(broker, **settings) as client:
        assert re.fullmatch(shape.replace("PID", str(os.getpid())), client.client_id)
        assert client.link.client_id == client.client_id


def test_two_clients_that_keep_their_name_are_one_to_brokers_and_their_lives_are_not(broker: Broker):
    ids = [[make_client(broker, keeps_its_name=keeps).client_id for _ in range(2)] for keeps in (True, False)]
    assert [len(set(pair)) for pair in ids] == [1, 2]


@pytest.mark.parametrize("wrong", [*NO_TEXTS, "", " "])
def test_a_name_that_is_none_is_refused(wrong):
    if wrong is not None:
        with pytest.raises(InvalidArgumentError, match="instance_name"):
            named_client_id("127.0.0.1", wrong)


@pytest.mark.parametrize("names", [{"instance_name": "a"}, {"unit_name": "a"}, {"keeps_its_name": True}])
def test_names_are_refused_where_there_is_an_id(broker: Broker, names):
    with pytest.raises(InvalidArgumentError, match="one id already"):
        make_client(LocalLink(broker), **names)
    with pytest.raises(InvalidArgumentError, match="one id already"):
        make_client(broker, client_id="c", **names)


def test_a_client_over_connections_is_named_after_the_address_that_others_see():
    with make_client("127.0.0.1:1", instance_name="till-7") as client:
        assert client.client_id == f"{own_address()}@till-7"
    with make_client("127.0.0.1:1") as client:
        shape = rf"{re.escape(own_address())}@{LIFE}".replace("PID", str(os.getpid()))
        assert re.fullmatch(shape, client.client_id)


def test_its_own_address_is_one_that_this_machine_has():
    family = socket.AF_INET6 if ":" in own_address() else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as one:
        one.bind((own_address(), 0))
