"""Codes of findings about the timer."""

from __future__ import annotations

from typing import Final

from seglog.storage.findings.code import REFUSES, Code, note, warning

TIMER_CODES: Final[dict[str, Code]] = {
    "timer-waiting": note(
        "timer messages that wait for their time",
        "RocketMQ delivers them when they are due; `seglog serve` has no timer, and does not",
        "serve the store with RocketMQ until they are delivered",
        "seglog get STORE rmq_sys_wheel_timer",
    ),
    "timer-check-missing": warning(
        "timer messages, but no config/timercheck",
        "RocketMQ delivers every timer message that is still in the log again",
        "it is written with the end of the timer topic; what was due in the minute before the log's end may"
        " be delivered twice",
    ),
    "timer-check-size": warning(
        "config/timercheck has the wrong length",
        "RocketMQ may deliver timer messages again",
        "it is rewritten",
    ),
    "timer-check-ahead": warning(
        "config/timercheck knows more than the timer's log or topic holds",
        "timer messages that are stored next may never be delivered",
        "it is set back to what the log holds",
    ),
    "timer-wheel-missing": warning(
        "timer messages wait, but there is no timerwheel",
        "RocketMQ rebuilds it from the timer log as far as that reaches",
        "it is rebuilt from the timer log",
    ),
    "timer-wheel-size": warning(
        "the timerwheel has the wrong length",
        REFUSES,
        "it is rebuilt from the timer log",
    ),
    "timer-slot-wrong": warning(
        "slots of the timerwheel lead to no unit of the timer log",
        "those of that second are not delivered in time",
        "the wheel is rebuilt from the timer log, which gets what it lacks from the commit log",
    ),
    "timer-log-damaged": warning(
        "units in the middle of the timer log cannot be",
        "RocketMQ cuts the timer log there; those behind are enqueued again or never delivered",
        "the timer log is rebuilt from the commit log",
    ),
    "timer-log-file": warning(
        "a file of the timer log is of another length than the others, or no such file",
        REFUSES,
        "the timer log is rebuilt from the commit log",
    ),
    "timer-unit-stray": warning(
        "units of the timer log lead to no timer message",
        "RocketMQ passes over them; those that they stood for may never be delivered",
        "the timer log is rebuilt from the commit log",
    ),
}
"""The timer."""
