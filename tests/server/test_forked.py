"""A child that a process with a server is forked into ends without touching store, clients or lock."""

from __future__ import annotations

import json
import subprocess
import sys

from tests.support.machine.patience import patience_s
from tests.support.rows import every_row

PARENT = """
import json, multiprocessing, os, sys, warnings
from seglog import Broker, Listener, MessageStore, Producer, Server
from seglog.broker.settings import BrokerConfig
from seglog.errors import StoreLockedError

(path,) = sys.argv[1:]
told = {}


def work():
    return None


def ended(child):
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def is_locked():
    child = os.fork()
    if not child:
        try:
            MessageStore.open(path)
        except StoreLockedError:
            os._exit(3)
        os._exit(0)
    return ended(child) == 3


def multiprocessed():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Python says that threads and forks do not go together
        process = multiprocessing.get_context("fork").Process(target=work)
        process.start()
        process.join()
    return process.exitcode


listener = Listener(port=0)
with (
    Broker.open(path, config=BrokerConfig(address=listener.address)) as broker,
    Server(broker, listener) as server,
    Producer(server.address) as producer,
):
    producer.send("T", b"before", queue_id=0)
    for way in ("exit", "error", "multiprocessing"):
        if way == "multiprocessing":
            code = multiprocessed()
        elif child := os.fork():
            code = ended(child)
        elif way == "exit":
            sys.exit(5)  # the with statements end here too
        else:
            sys.stderr = open(os.devnull, "w")
            raise ValueError("in the child")
        told[way] = {
            "code": code, "abort": os.path.exists(os.path.join(path, "abort")), "locked": is_locked()
        }
        producer.send("T", way.encode(), queue_id=0)
        told[way]["connections"] = server.connection_count
with MessageStore.open(path, read_only=True) as store:
    told["bodies"] = [bytes(one.body).decode() for one in store.get("T", 0, 0)]
    told["mode"] = store.recovery.mode
print(json.dumps(told))
"""


def test_a_forked_child_leaves_the_parents_server_as_it_is(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", PARENT, tmp_path / "s"],
        capture_output=True,
        text=True,
        check=False,
        timeout=patience_s(120),
    )
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    with every_row() as row:
        for way, code in {"exit": 5, "error": 1, "multiprocessing": 0}.items():
            with row(way):
                assert told[way] == {"code": code, "abort": True, "locked": True, "connections": 1}
    assert (told["bodies"], told["mode"]) == (["before", "exit", "error", "multiprocessing"], "normal")
