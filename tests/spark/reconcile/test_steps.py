"""After a reconciliation each kind of finding has a command that can be typed."""

from __future__ import annotations

import shlex

import pytest
from click.testing import CliRunner

from seglog import MessageStore
from seglog.cli.main import commands
from seglog.spark.reconcile.counts import MessageCounts
from seglog.spark.reconcile.outcome import Outcome
from seglog.spark.reconcile.queue_verdicts import QueueKey, QueueVerdict
from seglog.spark.reconcile.steps import next_steps
from seglog.spark.reconcile.verdicts import MESSAGE_FINDINGS, MESSAGE_VERDICTS, QUEUE_FINDINGS, QUEUE_VERDICTS


@pytest.fixture
def store(tmp_path):
    """A store with a group that has a dead letter, in a folder whose name needs quotes."""
    root = tmp_path / "a store"
    with MessageStore.open(root) as opened:
        for topic in ("orders", "%DLQ%billing"):
            opened.put(topic, b"body", queue_id=0)
    return str(root)


def queue(store, verdict, group="billing", topic="orders", offset=0):
    return QueueVerdict(QueueKey(store, group, topic, 0), offset, 0, 1, 1, 0, verdict, "WARN")


def messages(*found):
    return MessageCounts(
        {("billing", "orders", verdict): 1 for verdict in found}, {"orders": 1}, {"orders": 1}
    )


def outcome(store, queues=(), counts=None):
    return Outcome([store], list(queues), counts, iter(()))


def test_verdicts_that_are_no_findings_have_no_next_step(store):
    queues = [queue(store, verdict) for verdict in QUEUE_VERDICTS if verdict not in QUEUE_FINDINGS]
    counts = messages(*(verdict for verdict in MESSAGE_VERDICTS if verdict not in MESSAGE_FINDINGS))
    assert next_steps(outcome(store, queues, counts)) == []


def test_every_finding_has_a_step_that_names_the_store(store):
    steps = next_steps(
        outcome(store, [queue(store, one) for one in QUEUE_FINDINGS], messages(*MESSAGE_FINDINGS))
    )
    assert {step.verdict for step in steps} == QUEUE_FINDINGS | MESSAGE_FINDINGS
    assert all(store in shlex.split(step.command) for step in steps)


def test_a_store_that_begins_with_a_dash_is_no_option():
    queues = [queue("-store", one) for one in QUEUE_FINDINGS]
    for step in next_steps(outcome("-store", queues, messages(*MESSAGE_FINDINGS))):
        assert "./-store" in shlex.split(step.command)


@pytest.mark.parametrize("verdict", sorted(QUEUE_FINDINGS))
def test_the_command_for_a_group_in_a_queue_runs_as_it_is_written(store, verdict):
    topic = "%DLQ%billing" if verdict == "dead" else "orders"
    (step,) = next_steps(outcome(store, [queue(store, verdict, topic=topic)] * 3))
    assert step.others == 2
    name, *words = shlex.split(step.command)
    ran = CliRunner().invoke(commands, words)
    assert (name, ran.exit_code) == ("seglog", 0), ran.output


@pytest.mark.parametrize("verdict", ["dead", "expired"])
def test_the_command_for_messages_runs_as_it_is_written(store, verdict):
    (step,) = next_steps(outcome(store, counts=messages(verdict)))
    name, *words = shlex.split(step.command)
    ran = CliRunner().invoke(commands, words)
    assert (name, ran.exit_code) == ("seglog", 0), ran.output


def test_offsets_of_the_brokers_own_groups_are_left_to_a_repair(store):
    (step,) = next_steps(outcome(store, [queue(store, "ahead", "SCHEDULE_CONSUMER", "SCHEDULE_TOPIC_XXXX")]))
    assert step.command == f"seglog repair '{store}'"


def test_of_a_store_at_an_address_a_copy_is_named_where_a_command_takes_folders(store):
    address = "s3://bucket/store"
    steps = next_steps(outcome(address, [queue(address, "ahead")], messages("lost")))
    assert [step.command for step in steps] == [
        f"seglog spark audit {address}",
        "seglog offsets reset COPY billing orders --queue 0 --end",
    ]
