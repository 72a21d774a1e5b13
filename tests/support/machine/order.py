"""Which tests begin first where several processes share them: what begins last has to be short."""

from __future__ import annotations

from typing import Final

SPARK_TESTS: Final = "tests/spark/"
"""All of it is one process's, which has the session."""

LONG_TESTS: Final = (
    SPARK_TESTS,
    "tests/damage/",
    "tests/tooling/test_readme.py",
    "tests/doctor/check/test_one_verdict.py",
    "tests/crash/",
    "tests/perf/",
    "tests/hostile/",
    "tests/tooling/test_recipes.py",
)
"""What takes a minute and more, the longest first."""


def place_in_order(test: str) -> int:
    """Returns where a test stands; tests of the same place keep their order.

    Args:
        test: Its file and name as pytest has them, from the root of the repository.
    """
    return next((at for at, name in enumerate(LONG_TESTS) if test.startswith(name)), len(LONG_TESTS))
