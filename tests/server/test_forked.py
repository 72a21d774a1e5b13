"""A child that a process with a server is forked into ends without touching store, clients or lock."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from tests.support.machine.patience import patience_s

PARENT = """
import json, multiprocessing, os, subprocess, sys, warnings
from seglog import Broker, Listener, MessageStore, Producer, Server
from seglog.broker.settings import BrokerConfig

path, way = sys.argv[1:]
found = {}


def work():
    found["worked"] = True


def is_locked():
    words = "import sys; from seglog import MessageStore; MessageStore.open(sys.argv[1])"
    return subprocess.run([sys.executable, "-c", words, path], capture_output=True).returncode != 0


listener = Listener(port=0)
with (
    Broker.open(path, config=BrokerConfig(address=listener.address)) as broker,
    Server(broker, listener) as server,
    Producer(server.address) as producer,
):
    producer.send("T", b"before", queue_id=0)
    if way == "exit":
        child = os.fork()
        if not child:
            sys.exit(5)  # the with statements end here too
        found["code"] = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    elif way == "error":
        child = os.fork()
        if not child:
            sys.stderr = open(os.devnull, "w")
            raise ValueError("in the child")
        found["code"] = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    else:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Python says that threads and forks do not go together
            process = multiprocessing.get_context("fork").Process(target=work)
            process.start()
            process.join()
        found["code"] = process.exitcode
    found["abort"] = os.path.exists(os.path.join(path, "abort"))
    found["locked"] = is_locked()
    producer.send("T", b"after", queue_id=0)
    found["connections"] = server.connection_count
with MessageStore.open(path, read_only=True) as store:
    found["bodies"] = [bytes(one.body).decode() for one in store.get("T", 0, 0)]
    found["mode"] = store.recovery.mode
print(json.dumps(found))
"""


@pytest.mark.parametrize(("way", "code"), [("exit", 5), ("error", 1), ("multiprocessing", 0)])
def test_a_forked_child_leaves_the_parents_server_as_it_is(tmp_path, way, code):
    done = subprocess.run(
        [sys.executable, "-c", PARENT, tmp_path / "s", way],
        capture_output=True,
        text=True,
        check=False,
        timeout=patience_s(120),
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {
        "code": code,
        "abort": True,
        "locked": True,
        "connections": 1,
        "bodies": ["before", "after"],
        "mode": "normal",
    }
