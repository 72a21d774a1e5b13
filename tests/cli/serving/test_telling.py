"""A process waits for no reader of what it logs, not even where a thread has failed."""

from __future__ import annotations

import subprocess
import sys
import threading

from seglog.cli.serving.telling import logged
from tests.support.machine.patience import wait_for_end

FAILING = """
import threading
from seglog.cli.serving.telling import logged

def fail():
    raise KeyError("x" * 200_000)

class Failing:
    def __del__(self):
        raise ValueError("y" * 200_000)

with logged():
    for _ in range(20):
        one = threading.Thread(target=fail, name="failing")
        one.start()
        one.join()
        Failing()
print("over", flush=True)
"""


def test_a_stderr_that_nobody_reads_holds_up_no_thread_that_fails(start_child):
    process = start_child([sys.executable, "-c", FAILING], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert wait_for_end(process, idle_s=60) == 0
    assert process.stdout.read() == b"over\n"


def test_the_end_of_a_thread_is_a_line_of_the_log(capfd):
    def fail():
        raise KeyError("slip")

    hooks = threading.excepthook, sys.unraisablehook
    with logged():
        one = threading.Thread(target=fail, name="failing")
        one.start()
        one.join()
    said = capfd.readouterr().err
    assert "ERROR failing has ended with KeyError('slip')" in said
    assert "Traceback" in said
    assert (threading.excepthook, sys.unraisablehook) == hooks
