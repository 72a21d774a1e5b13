"""Who takes part where, and that peers which were built do what they say."""

from __future__ import annotations

import pytest

from perf.contestants import rust_peer
from perf.contestants.java_peer import CHRONICLE, KAFKA, JavaPeer
from perf.contestants.line_up import keys_of, line_up
from perf.contestants.rust_peer import RUST_PEERS
from perf.figures.aims import SHOWN, cast
from perf.figures.results import KEYS
from perf.figures.sample import SanityError
from perf.plan.budget import Budget
from perf.plan.cases import CASE, CASES
from tests.interop.judging import toolchain

TINY = Budget(0.2)
COMMITLOG, WALRUS, FJALL = RUST_PEERS


def rows(peer):
    return {case.name for case in CASES if peer.knows(case)}


PUTS = {"put-128", "put-1024"}
READS = {"pull-1", "loop-128", "loop-1024", "random-copy", "random-loop"}
VIEWS = {"view-1", "random-view"}
BATCHES = {case.name for case in CASES if case.name.startswith("batch-")}
LARGE = {name for name in BATCHES if name.endswith("-4096")}


def test_peers_take_part_in_the_rows_that_they_can_do():
    assert rows(COMMITLOG) == PUTS | BATCHES | READS
    assert rows(WALRUS) == PUTS | (BATCHES - LARGE) | {"sync-1"}
    assert rows(FJALL) == PUTS | BATCHES | READS | VIEWS | {"sync-1"}
    kafka, chronicle = JavaPeer(KAFKA), JavaPeer(CHRONICLE)
    try:
        assert rows(kafka) == PUTS | BATCHES | READS | {"sync-1", "latency"}
        assert rows(chronicle) == PUTS | BATCHES | READS | VIEWS | {"sync-1", "latency"}
    finally:
        kafka.close()
        chronicle.close()


def test_everybody_named_by_an_aim_is_known_and_knows_the_row():
    known = {peer.key: peer for peer in RUST_PEERS} | {"kafka": JavaPeer(KAFKA)}
    for name, who in cast(SHOWN).items():
        assert who <= set(KEYS)
        assert [key for key in who & set(known) if not known[key].knows(CASE[name])] == []
    known["kafka"].close()


def test_a_smoke_test_builds_nobody_who_was_not_asked_for():
    built = {"kafka", "commitlog", "walrus", "fjall"}
    assert keys_of([], is_smoke=False) == set(KEYS)
    assert keys_of([], is_smoke=True) == set(KEYS) - built
    assert keys_of(["commitlog", "native"], is_smoke=True) == {"commitlog", "native"}


def test_peers_in_rust_are_left_out_with_the_reason_where_cargo_is_not(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    found = line_up(["fjall"], None)
    assert found.contestants == []
    assert found.left_out == {"fjall 3.1.13": "no cargo on PATH; peers in Rust are built with it"}


@pytest.mark.parametrize("peer", RUST_PEERS, ids=lambda peer: peer.key)
def test_peers_in_rust_do_their_rows(peer, tmp_path):
    if toolchain.built_rust(rust_peer.PROJECT, rust_peer.PROGRAM) is None:
        pytest.skip("the peers in Rust were not built (python -m perf --only commitlog)")
    for name in sorted(rows(peer)):
        place = tmp_path / name
        place.mkdir()
        sample = peer.sample(CASE[name], TINY, place)
        assert sample.operations > 0
        assert any(file.stat().st_size for file in place.rglob("*"))


def test_a_peer_in_rust_that_cannot_do_what_was_asked_has_no_figure(tmp_path):
    if toolchain.built_rust(rust_peer.PROJECT, rust_peer.PROGRAM) is None:
        pytest.skip("the peers in Rust were not built (python -m perf --only commitlog)")
    with pytest.raises(SanityError, match="commitlog does not sync"):
        COMMITLOG.sample(CASE["sync-1"], TINY, tmp_path)
    with pytest.raises(SanityError, match="walrus cannot read at a place"):
        WALRUS.sample(CASE["loop-128"], TINY, tmp_path)
