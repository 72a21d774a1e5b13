"""Exit codes of commands that end without an error of the tree, each with its meaning.

Exit codes of errors are in the tree, from 3 and 10 on; a test checks that no number has two meanings.
"""

from __future__ import annotations

import enum
from typing import Self


class Ending(enum.IntEnum):
    """Exit codes that belong to no error.

    Attributes:
        meaning: What the code means, for the table in ``docs/errors.md``.
    """

    meaning: str

    def __new__(cls, value: int, meaning: str) -> Self:
        """Creates a member that is equal to its exit code."""
        member = int.__new__(cls, value)
        member._value_ = value
        member.meaning = meaning
        return member

    CLEAN = 0, "success; of a look at a store: clean, or only notes"
    FINDINGS = 1, "a look at a store found only what a repair puts right without loss; or a check failed"
    USAGE = 2, "wrong usage, or an answer is needed and no terminal is there to ask at (`--yes` asks nothing)"
    NOTES = 4, "`check --strict` found only notes"
    LOSS = 5, "a look at a store found messages that are lost, or that cannot be read"
    LEFT = 6, "`repair --apply` did what it could, and a check still finds something; or no repair helps"
    BUG = 70, "a bug in seglog (`EX_SOFTWARE` of sysexits.h)"
    INTERRUPTED = 130, "an interruption (Ctrl-C)"
    NO_READER = 141, "the reader of the output went away"
