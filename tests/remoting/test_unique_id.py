"""Message ids have RocketMQ's parts and never repeat."""

from __future__ import annotations

import datetime as dt
import threading

from seglog.clock import VirtualClock
from seglog.remoting.unique_id import UniqueIds
from tests.support.machine.patience import join_thread

MONTH_START_MS = int(dt.datetime(2026, 2, 1, tzinfo=dt.UTC).timestamp()) * 1000


def test_an_id_is_address_process_life_time_and_counter():
    ids = UniqueIds(VirtualClock(MONTH_START_MS + 5), process_id=0x1234, life=0xCAFEBABE)
    assert ids.next() == "7F000001" + "1234" + "CAFEBABE" + "00000005" + "0000"
    assert ids.next() == "7F000001" + "1234" + "CAFEBABE" + "00000005" + "0001"


def test_an_ipv6_address_makes_56_digits():
    assert len(UniqueIds(address=bytes(16)).next()) == 56


def test_the_time_starts_again_with_each_month():
    clock = VirtualClock(MONTH_START_MS + 28 * 86_400_000 - 1)
    ids = UniqueIds(clock, process_id=0, life=0)
    assert int(ids.next()[20:28], 16) == 28 * 86_400_000 - 1
    clock.advance(1)
    assert int(ids.next()[20:28], 16) == 0


def test_a_clock_set_back_over_the_start_of_the_month_gives_no_negative_time():
    clock = VirtualClock(MONTH_START_MS)
    ids = UniqueIds(clock)
    ids.next()
    clock.advance(-5000)
    assert int(ids.next()[20:28], 16) == 0


def test_threads_never_get_the_same_id():
    ids = UniqueIds(VirtualClock(MONTH_START_MS))
    found: list[str] = []

    def take():
        found.extend([ids.next() for _ in range(5000)])

    threads = [threading.Thread(target=take) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        join_thread(thread, idle_s=30)
    assert len(set(found)) == 20_000
