"""Which tests begin first where several processes share them: what begins last has to be short."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[3]
SESSION: Final = "spark: SparkSession"
"""How a test asks for the session; files with such tests are one process's, which has the session."""

LONG_TESTS: Final = (
    "tests/doctor/check/test_one_verdict.py",
    "tests/cli/serving/",
    "tests/damage/",
    "tests/hostile/",
    "tests/server/test_longest_waits.py",
    "tests/doctor/check/test_memory.py",
    "tests/tooling/test_readme.py",
    "tests/tooling/test_examples.py",
    "tests/cli/test_plain_install.py",
    "tests/crash/",
    "tests/perf/",
    "tests/interop/brokers/test_broker_alike.py",
    "tests/interop/clients/test_java_clients.py",
    "tests/interop/clients/test_go_clients.py",
    "tests/interop/test_timers.py",
    "tests/interop/repaired/",
    "tests/interop/clients/",
)
"""What takes longest, the longest first; a whole run of the gate measures it (JUnit has the times)."""


def place_in_order(test: str) -> int:
    """Returns where a test stands; tests of the same place keep their order.

    Args:
        test: Its file and name as pytest has them, from the root of the repository.
    """
    if needs_session(test.partition("::")[0]):
        return -1
    return next((at for at, name in enumerate(LONG_TESTS) if test.startswith(name)), len(LONG_TESTS))


@functools.cache
def needs_session(file: str, root: Path = ROOT) -> bool:
    """Returns whether tests of a file ask for the session of Spark.

    Args:
        file: The file, from the root of the tests.
        root: That root.
    """
    try:
        return SESSION in (root / file).read_text(encoding="utf-8")
    except OSError:
        return False
