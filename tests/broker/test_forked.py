"""A forked child writes no file of its parent's broker, gets no answer from it, and waits for nothing."""

from __future__ import annotations

import json
import subprocess
import sys

from tests.support.machine.patience import patience_s

CHILD = """
import gc, json, os, signal, sys, threading
from pathlib import Path
from seglog import Broker, MessageStore, Producer, SeglogError
from seglog.remoting.codes import RequestCode
from seglog.remoting.command import Request

broker = Broker.open(sys.argv[1])
producer = Producer(broker, "pg")
producer.send("before", b"x", queue_id=0)
broker.offsets.commit("g", "before", 0, 1)
store, topics, offsets = broker.store, broker.topics, broker.offsets
list_clusters = Request(RequestCode.GET_BROKER_CLUSTER_INFO)
file = Path(sys.argv[1], "config", "consumerOffset.json")
uses = {
    "dispatch": lambda: broker.dispatch(list_clusters),
    "answer": lambda: broker.answer(list_clusters),
    "persist": broker.persist,
    "advance": lambda: broker.advance("1s"),
    "run_due": broker.run_due,
    "topics": lambda: broker.topics,
    "store.put": lambda: store.put("T", b"x"),
    "store.get": lambda: store.get("before", 0, 0),
    "store.files.remove": lambda: store.files.remove(file),
    "table": lambda: topics.delete("before"),
    "saved offsets": offsets.persist,
}
go, begin = os.pipe()
taken = threading.Lock()

def hold():  # what another thread has at the fork, the child never gets
    with broker._closing:
        taken.release()
        os.read(holding, 1)

holding, let_go = os.pipe()
taken.acquire()
holder = threading.Thread(target=hold)
holder.start()
taken.acquire()
child = os.fork()
if not child:
    signal.alarm(int(sys.argv[2]))
    os.read(go, 1)
    found = {"repr": repr(broker)}
    for name, use in uses.items():
        try:
            found[name] = repr(use())
        except SeglogError as error:
            found[name] = type(error).__name__
    broker.close()
    del broker, store, topics, offsets, uses
    gc.collect()
    print(json.dumps(found), flush=True)
    os._exit(7)
os.write(let_go, b"x")
holder.join()
producer.send("after", b"y", queue_id=0)
offsets.commit("g", "after", 0, 1)
broker.persist()
saved = file.read_bytes()
os.write(begin, b"x")
status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
is_as_before = file.read_bytes() == saved
producer.send("after", b"z", queue_id=0)
broker.close()
with MessageStore.open(sys.argv[1], read_only=True) as store:
    print(json.dumps([status, is_as_before, store.max_offset("after", 0)]))
"""


def test_a_forked_child_gets_one_error_and_leaves_the_files_to_its_parent(tmp_path):
    limit_s = int(patience_s(60))
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", CHILD, tmp_path / "store", str(limit_s)],
        capture_output=True,
        text=True,
        check=False,
        timeout=3 * limit_s,
    )
    assert done.returncode == 0, done.stderr
    found, outcome = (json.loads(line) for line in done.stdout.splitlines())
    assert outcome == [7, True, 2], found
    assert found.pop("repr") == f"<Broker broker-a over {tmp_path / 'store'} of another process>"
    assert set(found.values()) == {"ClosedError"}, found
