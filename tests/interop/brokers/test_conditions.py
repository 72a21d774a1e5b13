"""RocketMQ's own SQL92 filter and ours say the same of the same messages, and refuse the same texts."""

from __future__ import annotations

import json
import subprocess

import pytest

from seglog.errors import InvalidArgumentError
from seglog.remoting.sql92.grammar import compile_sql
from seglog.remoting.sql92.values import IncomparableError
from tests.interop.judging import toolchain
from tests.interop.judging.judge import Judge
from tests.support.conditions import random_expression, random_properties, random_words
from tests.support.machine.patience import patience_s
from tests.support.scale import chance, scaled

pytestmark = pytest.mark.interop

SOUND = scaled(6_000, 60_000)
WORDS = scaled(6_000, 60_000)
MESSAGES = 8
BY_HAND = (
    "", " ", "a", "NOT a", "a = 1 b = 2", "a = 1)", "a NOT b", "a IS", "-- c", "-- c\na = '5'",
    "a--\n= '5'", "a = /* x */ '5'", "a = /* x ** / */ '5'", "a /* ", "'it''s' = a", "a = 'x", "a = 5l",
    "a = 5L", "0l = a", "a=5and b=7", "a>5.and b>.5", "NOTE = 'x'", "not_a = 'x'", "a = 'b' = TRUE",
    "a = b", "a <> b", "a > b", "a > 'x'", "a > TRUE", "'x' > a", "a IN (5)", "5 IN ('5')",
    "(a) IN ('5')", "a IN ()", "a BETWEEN 7 AND 5", "a BETWEEN 5 AND -5", "a NOT BETWEEN 7 AND 5",
    "NULL IS NULL", "a = NULL", "NULL", "5", "'a'", "-a = 5", "- - 5 = a", "--5 = a", "((((a = '5'))))",
    "a CONTAINS ''", "NOT a CONTAINS 'b'", "a CONTAINS 'b' CONTAINS 'c'", "\u212a = '5'",
    "a \u017fTARTSWITH 'b'", "TRUE = 5", "5 = TRUE", "TRUE = 'x'", "'true' = TRUE", "TRUE = a",
    "FALSE AND TRUE = a", "TRUE OR TRUE = a", "a = TRUE", "a > 2147483648", "2147483648 > a", "5.0 = a",
    "a > 5 > 3", "a AND", "AND a", "a OR OR b", "a = -9223372036854775808",
)  # fmt: skip


def ask_java(judge, tmp_path, questions):
    path = tmp_path / "questions"
    path.write_text(
        "".join(json.dumps({"expression": text, "messages": messages}) + "\n" for text, messages in questions)
    )
    command = toolchain.command_line(toolchain.build(judge.version), *toolchain.QUICK)
    command[-1] = "seglog.judge.Conditions"
    done = subprocess.run(
        [*command, path], capture_output=True, text=True, check=True, timeout=patience_s(60)
    )
    return [json.loads(line) for line in done.stdout.splitlines()]


def ask_us(text, messages):
    try:
        expression = compile_sql(text)
    except InvalidArgumentError:
        return None
    answers = []
    for message in messages:
        try:
            answers.append(expression.evaluate(message))
        except IncomparableError:
            answers.append("error")
    return answers


def longest_beginning(text, messages):
    """Returns what the longest beginning of a text says that is an expression."""
    for end in range(len(text) - 1, 0, -1):
        answers = ask_us(text[:end], messages)
        if answers is not None:
            return answers
    return None


@pytest.mark.parametrize("seed", [1, 2])
def test_s0_04_rocketmqs_filter_and_ours_agree(judge: Judge, tmp_path, seed):
    drawn = chance("conditions", seed)
    texts = [
        *BY_HAND,
        *(random_expression(drawn) for _ in range(SOUND)),
        *(random_words(drawn) for _ in range(WORDS)),
    ]
    questions = [(text, [random_properties(drawn) for _ in range(MESSAGES)]) for text in texts]
    compiled = trailing = errors = 0
    for (text, messages), theirs in zip(questions, ask_java(judge, tmp_path, questions), strict=True):
        ours = ask_us(text, messages)
        if ours is None and theirs is not None:
            # They drop what follows an expression without a word; ours refuses it.
            trailing += 1
            assert theirs == longest_beginning(text, messages), (text, messages)
        else:
            assert ours == theirs, (text, messages)
        compiled += ours is not None
        errors += ours is not None and "error" in ours
    assert compiled > SOUND / 2
    assert trailing > WORDS / 300
    assert errors > SOUND / 12
