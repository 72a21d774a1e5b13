"""Threads and tasks that put, killed at any moment, leave at most a torn end: no hole, nothing lost."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

from tests.support.scale import scaled, seed_number

ROOT = Path(__file__).resolve().parents[2]
LIVES_A_RUN = scaled(40, 40)

# A server that forks a writer for each life, kills it and holds what it left against what was acknowledged.
# A writer notes in shared memory, for each thread, up to where its queue was acknowledged.
LIVES = """
    import asyncio, json, mmap, os, random, shutil, signal, struct, sys, threading, time
    from pathlib import Path
    from seglog.storage.files.files import RealFiles
    from seglog.storage.findings.code import Severity
    from seglog.storage.writes.flush import Durability
    from seglog.storage.format.index.index import IndexGeometry
    from seglog.storage.store import MessageStore
    from seglog.storage.writes.values import NewMessage
    from seglog.storage.survey.store_survey import survey

    THREADS, LOOPS, TASKS, QUEUES, LIVES_A_STORE = 6, 2, 20, 3, 10
    root, lives, seed = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    acked = mmap.mmap(-1, 8 * (THREADS + LOOPS * QUEUES))

    def work(store, number, chance):
        queue_id = number % QUEUES
        while True:
            durability = chance.choice([Durability.SYNC, Durability.SYNC, Durability.ASYNC])
            body = bytes(chance.choice([0, 5, 30, 100, 300, 2000]))
            count = chance.choice([1, 1, 2, 8, 32])
            if count == 1:
                end = store.put("T", body, queue_id=queue_id, durability=durability).queue_offset + 1
            else:
                items = [chance.choice([body, NewMessage(body, tags="t")])] * count
                put = store.put_batch("T", items, queue_id=queue_id, durability=durability)
                end = put.queue_offset + count
            struct.pack_into("q", acked, 8 * number, end)

    def note_of_loop(number, queue_id, end):
        place = 8 * (THREADS + number * QUEUES + queue_id)
        struct.pack_into("q", acked, place, max(end, *struct.unpack_from("q", acked, place)))

    async def put_on(store, number, chance):
        while True:
            queue_id = chance.randrange(QUEUES)
            durability = chance.choice([Durability.SYNC, Durability.SYNC, Durability.SYNC, Durability.ASYNC])
            tags = chance.choice([None, None, "t"])
            body = bytes(chance.choice([0, 5, 30, 100, 300, 2000]))
            put = await store.put_async("T", body, queue_id=queue_id, tags=tags, durability=durability)
            note_of_loop(number, queue_id, put.queue_offset + 1)
            await asyncio.sleep(0)  # an ASYNC put waits for nothing

    def work_of_loop(store, number, seed):
        async def run():
            await asyncio.gather(
                *(put_on(store, number, random.Random(f"{seed} {task}")) for task in range(TASKS)))
        asyncio.run(run())

    def live(seed):
        store = MessageStore.open(
            root, segment_size_bytes=1 << 20, queue_file_size_bytes=20000,
            index_geometry=IndexGeometry(500, 2000), flush_interval_ms=20)
        for number in range(THREADS):
            chance = random.Random(f"{seed} {number}")
            threading.Thread(target=work, args=(store, number, chance), daemon=True).start()
        for number in range(LOOPS):
            own = f"{seed} loop {number}"
            threading.Thread(target=work_of_loop, args=(store, number, own), daemon=True).start()
        time.sleep(60)

    chance, losses, messages = random.Random(seed), [], 0
    for number in range(lives):
        if number % LIVES_A_STORE == 0:
            shutil.rmtree(root, ignore_errors=True)
            acked[:] = bytes(len(acked))
        if (child := os.fork()) == 0:
            try:
                live(f"{seed} {number}")
            finally:
                os._exit(1)
        time.sleep(chance.uniform(0.03, 0.2) if number % LIVES_A_STORE == 0 else chance.uniform(0.005, 0.2))
        os.kill(child, signal.SIGKILL)
        _child, status = os.waitpid(child, 0)
        assert os.WIFSIGNALED(status), "the writer ended by itself"
        if not (root / "commitlog").exists():
            continue
        found = survey(root, RealFiles())
        messages += len(found.rows)
        bad = [str(finding) for finding in found.findings if finding.severity is Severity.LOSS]
        # A loop has a place for each queue.
        for at, end in enumerate(struct.unpack(f"{THREADS + LOOPS * QUEUES}q", acked)):
            state = found.queues.get(("T", at % QUEUES))
            if end > (0 if state is None else state.max_offset):
                bad.append(f"thread or loop {at}: {end} acknowledged")
        if bad:
            losses.append([number, *bad])
    shutil.rmtree(root, ignore_errors=True)
    print(json.dumps({"losses": losses, "messages": messages}))
"""


def lives(root: Path, count: int, seed: int) -> dict[str, Any]:
    """Lets a store live and die that often; returns what was lost in which life, and how much was found."""
    command = [sys.executable, "-c", textwrap.dedent(LIVES), str(root), str(count), str(seed)]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    answer: dict[str, Any] = json.loads(ran.stdout)
    return answer


@pytest.mark.parametrize("seed", range(scaled(1, 75)))
def test_killed_threads_leave_no_hole(memory_path: Path, seed):
    answer = lives(memory_path / "store", LIVES_A_RUN, seed_number("killed threads", seed))
    assert answer["losses"] == []
    assert answer["messages"] > 100 * LIVES_A_RUN
