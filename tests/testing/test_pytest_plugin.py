"""The plugin gives each test a broker of its own, and costs nothing where no test asks for one."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.support.machine.patience import patience_s

ROOT = Path(__file__).resolve().parents[2]
TIMEOUT_S = 60

TESTS = """
def test_first(seglog_broker, tmp_path):
    seglog_broker.producer().send("orders", b"late", delay_level=18)
    seglog_broker.advance("1h 59m 59.999s")
    assert seglog_broker.messages("orders") == []
    seglog_broker.advance("1ms")
    assert [message.body for message in seglog_broker.messages("orders")] == [b"late"]
    assert seglog_broker.path.is_relative_to(tmp_path)

def test_second(seglog_broker):
    assert seglog_broker.messages("orders") == []
    producer, seen = seglog_broker.producer(), []
    for number in range(10):
        producer.send("orders", b"%d" % number, sharding_key="a")
    with seglog_broker.consumer("billing", "orders", seen.append) as consumer:
        assert consumer.run_until_idle() == 10
    assert [message.body for message in seen] == [b"%d" % number for number in range(10)]

def test_third(seglog_broker):
    assert False, "says so"
"""


LEFT_OPEN = """
import gc, pytest
from seglog import OrderlyConsumer, Producer
from seglog.client.connect import make_client

@pytest.fixture(autouse=True)
def collected():
    yield
    gc.collect()

def test_started(seglog_broker):
    seglog_broker.consumer("g", "o", print).start()

def test_started_and_never_moved_with_a_link_of_its_own(seglog_broker):
    OrderlyConsumer(seglog_broker.link(), "g", "o", print).start()

def test_a_farewell_for_which_no_time_passes(seglog_broker):
    client = make_client(seglog_broker.link())
    producer = Producer(client, "shop")
    producer.send("o", b"1")
    producer.close()

def test_what_was_done_is_committed(seglog_broker):
    seglog_broker.producer().send("o", b"1", queue_id=0)
    consumer = seglog_broker.consumer("g", "o", print)
    assert consumer.run_until_idle() == 1
    seglog_broker.close()
    assert seglog_broker.offsets.query("g", "o", 0) == 1
    with pytest.raises(Exception, match="closed"):
        consumer.commit()
"""


def run(*arguments, cwd):
    environment = os.environ | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONPATH": str(ROOT)}
    return subprocess.run(
        [sys.executable, *arguments],
        check=False,
        cwd=cwd,
        env=environment,
        capture_output=True,
        text=True,
        timeout=patience_s(TIMEOUT_S),
    )


def test_each_test_gets_a_broker_of_its_own_on_virtual_time(tmp_path):
    (tmp_path / "test_orders.py").write_text(TESTS)
    done = run("-m", "pytest", "-p", "seglog.pytest_plugin", "-W", "error", cwd=tmp_path)
    assert "2 passed" in done.stdout
    assert "1 failed" in done.stdout
    assert "says so" in done.stdout


def test_finding_u21_clients_that_a_test_leaves_open_end_with_the_broker(tmp_path):
    (tmp_path / "test_left_open.py").write_text(LEFT_OPEN)
    done = run("-m", "pytest", "-p", "seglog.pytest_plugin", "-W", "error", cwd=tmp_path)
    assert "4 passed" in done.stdout
    assert "never awaited" not in done.stdout + done.stderr
    assert done.returncode == 0


def test_finding_9_of_the_broker_the_fixture_is_listed_with_its_time_and_the_threads_of_its_store(tmp_path):
    done = run("-m", "pytest", "-p", "seglog.pytest_plugin", "--fixtures", "-v", cwd=tmp_path)
    assert "seglog_broker" in done.stdout
    assert "whose time the test moves" in done.stdout
    assert "Its store has threads" in done.stdout


@pytest.mark.parametrize("module", ["numpy", "seglog.broker.broker", "seglog.storage.store"])
def test_loading_the_plugin_loads_no_engine(tmp_path, module):
    code = f"import sys, seglog.pytest_plugin; sys.exit({module!r} in sys.modules)"
    assert run("-c", code, cwd=tmp_path).returncode == 0


@pytest.mark.parametrize("module", ["seglog", "seglog.testing"])
def test_nothing_else_loads_pytest(tmp_path, module):
    code = f"import sys, {module}; sys.exit('pytest' in sys.modules)"
    assert run("-c", code, cwd=tmp_path).returncode == 0


def test_an_installed_seglog_brings_the_plugin():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["entry-points"]["pytest11"] == {"seglog_broker": "seglog.pytest_plugin"}
    assert not [name for name in project["dependencies"] if "pytest" in name]
