"""Messages that wait for what this broker does not have are counted when their store is opened."""

from __future__ import annotations

import signal

import pytest

from seglog import MessageStore
from seglog.cli.serving.undelivered import undelivered
from seglog.doctor.check.check import check_store
from tests.support.machine.patience import patience_s
from tests.support.material import golden


@pytest.mark.parametrize(
    ("name", "code", "said"),
    [
        (name, "timer-waiting", "WARNING 60 timer messages of rmq_sys_wheel_timer will not be delivered")
        for name in golden.config_names()
    ]
    + [("tx", "half-pending", "WARNING 12 half messages of transactions will not be asked about")],
)
def test_what_waits_for_rocketmq_is_counted_with_what_to_do(serving, tmp_path, name, code, said):
    root = golden.extract(name, tmp_path)
    (count,) = (one.messages for one in check_store(root).findings if one.code == code)
    one = serving(root)
    one.process.send_signal(signal.SIGTERM)
    _, log = one.process.communicate(timeout=patience_s(60))
    assert said in log
    assert f"WARNING {count} " in log
    assert f"`seglog {'check' if code == 'timer-waiting' else 'tx ls'} {root}`" in log


def test_timer_messages_that_no_timer_took_yet_wait_too(tmp_path):
    with MessageStore.open(tmp_path / "s") as store:
        assert list(undelivered(store)) == []
        for _ in range(3):
            store.put("rmq_sys_wheel_timer", b"x", queue_id=0)
        (said,) = undelivered(store)
    assert said.startswith("3 timer messages of rmq_sys_wheel_timer will not be delivered")
    (found,) = (one for one in check_store(tmp_path / "s").findings if one.code == "timer-waiting")
    assert (found.messages, found.file) == (3, "consumequeue/rmq_sys_wheel_timer/0")
