"""The judge itself: what it writes it serves again, and a directory it cannot open it says so about."""

from __future__ import annotations

from typing import Any

import pytest

from tests.interop.judging import toolchain
from tests.interop.judging.judge import Judge, JudgeError
from tests.interop.judging.questions import SMALL_GEOMETRY, Geometry, JavaHost, JavaMessages, Probe
from tests.support.material import golden
from tests.support.narrow import not_none

pytestmark = pytest.mark.interop


SIZES = ("mappedFileSizeCommitLog", "mappedFileSizeConsumeQueue", "maxHashSlotNum", "maxIndexNum")


@pytest.mark.parametrize(
    "name", ["basic", "broker-store", "d-magic", "d-zerotail-halt", "ipv6", "propcrc", "tx"]
)
def test_dump_is_the_golden_answer(judge: Judge, tmp_path, name):
    if judge.version != toolchain.DEFAULT_VERSION:
        pytest.skip("the golden answers are those of one version")
    store = golden.extract(name, tmp_path)
    text = (store / "lab.properties").read_text() if (store / "lab.properties").exists() else ""
    config: dict[str, Any] = dict(
        line.split("=", 1) for line in text.splitlines() if not line.startswith("#")
    )
    sizes = [int(config.pop(size)) for size in SIZES if size in config]
    answers = golden.expected(name)
    lines = judge.dump(store, Geometry(*sizes), **config).lines
    assert len(lines) == len(answers)
    for line, answer in zip(lines, answers, strict=True):
        # The dump that made the answers lost all that had no properties.
        if answer.pop("dumpError", None):
            assert line.items() >= answer.items()
        else:
            assert line == answer


def test_dump_serves_what_was_written(judge: Judge, tmp_path):
    messages = JavaMessages(
        topic="Orders", queue_id=2, count=5, tags="Paid", keys="order-", born_host=JavaHost("fe80::1", 4711)
    )
    answers = judge.write(tmp_path, [messages], SMALL_GEOMETRY)
    served = judge.dump(tmp_path, SMALL_GEOMETRY).of_kind("msg")
    assert [line["commitLogOffset"] for line in served] == [answer["phyOffset"] for answer in answers]
    assert [line["keyFound"] for line in served] == [{f"order-{number}": 1} for number in range(5)]
    assert {line["bornHost"] for line in served} == {"/[fe80:0:0:0:0:0:0:1]:4711"}


def test_halt_leaves_the_abort_file_and_a_clean_stop_removes_it(judge: Judge, tmp_path):
    judge.write(tmp_path, [JavaMessages(topic="T", count=3)], SMALL_GEOMETRY, halt=True)
    assert (tmp_path / "abort").exists()
    assert judge.dump(tmp_path, SMALL_GEOMETRY).store["abortBefore"] is True
    assert not (tmp_path / "abort").exists()


def test_a_directory_of_other_sizes_is_refused(judge: Judge, tmp_path):
    judge.write(tmp_path, [JavaMessages(topic="T")], SMALL_GEOMETRY)
    assert judge.dump(tmp_path).refusal == "load() returned false"


def test_write_refuses_a_directory_that_holds_a_store(judge: Judge, tmp_path):
    judge.write(tmp_path, [JavaMessages(topic="T")], SMALL_GEOMETRY)
    with pytest.raises(JudgeError, match="holds a store already"):
        judge.write(tmp_path, [JavaMessages(topic="T")], SMALL_GEOMETRY)


def test_held_store_refuses_a_second_one_until_it_is_released(judge: Judge, tmp_path):
    judge.write(tmp_path, [JavaMessages(topic="T")], SMALL_GEOMETRY)
    with judge.hold(tmp_path, SMALL_GEOMETRY):
        assert "Lock failed" in not_none(judge.try_lock(tmp_path, SMALL_GEOMETRY))
    assert judge.try_lock(tmp_path, SMALL_GEOMETRY) is None


def test_probe_answers_with_status_and_next_offset(judge: Judge, tmp_path):
    judge.write(tmp_path, [JavaMessages(topic="T", count=3)], SMALL_GEOMETRY)
    inside, behind = judge.probe(
        tmp_path, [Probe(topic="T"), Probe(topic="T", queue_offset=9)], SMALL_GEOMETRY
    )
    assert (inside["status"], inside["nextOffset"], len(inside["phyOffsets"])) == ("FOUND", 3, 3)
    assert (behind["status"], behind["nextOffset"]) == ("OFFSET_OVERFLOW_BADLY", 3)


@pytest.fixture(scope="module")
def bench_judge(judge: Judge):
    with Judge(judge.version, is_bench=True) as made:
        yield made


@pytest.mark.parametrize(
    ("workload", "options"),
    [
        ("write", {}),
        ("write", {"usual": True, "queues": 4, "timed": True}),
        ("write", {"batch_size": 32, "ragged": True}),
        ("sync", {"threads": 4}),
        ("async", {"threads": 16}),
        ("pull", {"queues": 4, "view": True}),
        ("random", {}),
    ],
)
def test_bench_counts_messages(bench_judge, tmp_path, workload, options):
    result = bench_judge.bench(
        tmp_path, workload, body_bytes=128, seconds=0.2, warm_up_seconds=0.1, message_count=1_000, **options
    )
    assert result["n"] > 0
    assert result["msgs_per_s"] == pytest.approx(result["n"] / result["seconds"], rel=0.01)
    if options.get("timed"):
        assert 0 < result["p50_us"] <= result["p99_us"] <= result["p999_us"] <= result["max_us"]


def test_bench_reopens_what_fill_left(bench_judge, tmp_path):
    store = tmp_path / "store"
    bench_judge.bench(store, "fill", body_bytes=128, message_count=3_200, batch_size=32, halt=True)
    assert bench_judge.bench(store, "reopen", body_bytes=128)["n"] == 3_200
