"""Expressions mean what RocketMQ's do: its grammar, three truth values, and what fits with what."""

from __future__ import annotations

import contextlib
import sys
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seglog.errors import InvalidArgumentError
from seglog.remoting.sql92.grammar import compile_sql
from seglog.remoting.sql92.nodes import MAX_DEPTH
from seglog.remoting.sql92.values import IncomparableError
from tests.support.conditions import random_words
from tests.support.rows import each_row

TRUE, FALSE, UNKNOWN, ERROR = "true", "false", "unknown", "error"


def truth(text, **properties):
    try:
        found = compile_sql(text).evaluate(properties)
    except IncomparableError:
        return ERROR
    return next(name for value, name in ((True, TRUE), (False, FALSE), (None, UNKNOWN)) if found is value)


@each_row(
    "text, expected",
    [
        ("a > 3 AND b IS NOT NULL", TRUE),
        ("a > 3 and none is not null", FALSE),
        ("a BETWEEN 5 AND 7", TRUE),
        ("a NOT BETWEEN 5 AND 7", FALSE),
        ("a not between 7 and 5", TRUE),
        ("b IN ('x', 'it''s')", TRUE),
        ("b NOT IN ('x', 'it''s')", FALSE),
        ("none NOT IN ('x')", UNKNOWN),
        ("b CONTAINS 't''' and b StartsWith 'it' and b endswith '''s'", TRUE),
        ("none NOT CONTAINS 'x'", FALSE),
        ("b NOT CONTAINS ''", FALSE),
        ("5 NOT ENDSWITH 'x'", FALSE),
        ("a = 5 AND a = '5' AND 5 = a", TRUE),
        ("a <> 6", TRUE),
        ("none <> 6", UNKNOWN),
        ("none = other", TRUE),
        ("a = none", FALSE),
        ("none = a", UNKNOWN),
        ("none IS NULL", TRUE),
        ("yes = TRUE", TRUE),
        ("a = TRUE", FALSE),
        ("TRUE = yes", ERROR),
        ("a > 4.5 AND 5e0 = a AND a < .6E1", TRUE),
        ("b > 3", ERROR),
        ("a > b", ERROR),
        ("a > d", TRUE),
        ("d = 4", ERROR),
        ("d = 4.0", TRUE),
        ("d < 2147483648", ERROR),
        ("FALSE AND b > 3", FALSE),
        ("TRUE OR b > 3", TRUE),
        ("b > 3 OR TRUE", ERROR),
        ("NOT (b > 3)", ERROR),
        ("a", FALSE),
        ("NOT a", TRUE),
        ("none", UNKNOWN),
        ("NOT NULL", UNKNOWN),
        ("NULL IS NULL", TRUE),
        ("NOT a = FALSE", FALSE),
        ("-a = 5", UNKNOWN),
        ("a > -5 AND - -5 = a AND +a = +5", TRUE),
        ("a = 5 -- to the end\n AND /* and ** within */ TRUE", TRUE),
        ("a = --5", TRUE),
        ("a = 5 -- 'to\r-- the' /* end\n AND TRUE", TRUE),
        ("'--\n' = '--\n' AND /* -- \n */ TRUE", TRUE),
        ("(a = 5) = TRUE", TRUE),
        ("(a = 5) = 5", FALSE),
        ("INDEX = 'i' AND _x$1 = '1'", TRUE),
        ("a = 5and TRUE", TRUE),
    ],
)
def test_s0_04_what_an_expression_is_for_a_message(text, expected):
    assert (
        truth(text, a="5", b="it's", d=" 4.0 ", yes="True", INDEX="i", _x_1="", **{"_x$1": "1"}) == expected
    )


@each_row(
    "value, whole, floating",
    [
        ("5", TRUE, TRUE),
        ("+5", TRUE, TRUE),
        ("\u0665", TRUE, ERROR),
        ("5.0", ERROR, TRUE),
        (" 5\t", ERROR, TRUE),
        ("\u00a05", ERROR, ERROR),
        ("5d", ERROR, TRUE),
        ("0x1.4p2", ERROR, TRUE),
        ("0x1p9999", ERROR, FALSE),
        ("1_0", ERROR, ERROR),
        ("NaN", ERROR, FALSE),
        ("-Infinity", ERROR, FALSE),
        ("99999999999", ERROR, FALSE),
        ("9" * 500, ERROR, FALSE),
        ("", ERROR, ERROR),
        ("\U0001d7fb", ERROR, ERROR),
    ],
)
def test_a_string_is_the_number_that_java_takes_it_for(value, whole, floating):
    assert (truth("a = 5", a=value), truth("a = 5.0", a=value)) == (whole, floating)


def test_a_number_that_is_none_is_the_greatest_and_minus_zero_is_below_zero():
    assert truth("a > 1e300", a="NaN") == TRUE
    assert truth("a >= b AND a <= b", a="NaN", b="NaN") == TRUE
    assert truth("a < b", a="-0.0", b="0.0") == TRUE
    assert truth("a < -1e300", a="-0x1p99999") == TRUE


def test_a_whole_number_beyond_32_bits_takes_strings_beyond_them():
    assert truth("a > 2147483648", a="9223372036854775807") == TRUE
    assert truth("a > 2147483648", a="9223372036854775808") == ERROR
    assert truth("a = -2147483649", a="-2147483649") == TRUE
    assert truth("4294967296.0 = 4294967296") == TRUE


@each_row(
    "text",
    [
        "", "  ", "-- only a note\n", "1", "'a'", "-a", "a AND", "AND a", "a = ", "a = NULL", "NULL <> a",
        "a NOT b", "a IS", "a IN ()", "a IN (5)", "5 IN ('5')", "a BETWEEN 7 AND 5",
        "a BETWEEN 'a' AND 'b'", "a > 'x'", "a > TRUE", "a > 5 > 3", "TRUE = 5", "a = 0.0", "a = 1e999",
        "a = 9223372036854775808", "a = -9223372036854775808", "a = 007", "a = 'x", "a = 5 b = 6",
        "a = 5)", "(a = 5", "a = é", "a == 5", "a != 5", "a CONTAINS b", "AND = 1", "a = '\u212a",
        "a \u017fTARTSWITH 'x'", "a /* = 5", "1 = 1 AND 5", "NOT 5",
    ],
)  # fmt: skip
def test_what_is_no_expression_is_refused(text):
    with pytest.raises(InvalidArgumentError):
        compile_sql(text)


@pytest.mark.parametrize(
    "text", ["-" * 100_000 + "1", "\n" + "-- " * 50_000, "a = 5 " + "/*" * 50_000, "'" * 100_001]
)
def test_what_is_no_expression_is_refused_soon(text):
    began_s = time.process_time()
    with pytest.raises(InvalidArgumentError):
        compile_sql(text)
    assert time.process_time() - began_s < 5


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("a = 5 b = 6", "unexpected 'b' at column 7"),
        ("-- a note\na = 5 -- another\n  b = 6", "unexpected 'b' at column 3"),
        ("a = #", "unexpected '#' at column 5"),
        ("a =", "unexpected end"),
        ("a IN (5)", "unexpected '5' at column 7"),
    ],
)
def test_a_refusal_says_where_the_text_goes_wrong(text, says):
    with pytest.raises(InvalidArgumentError) as refusal:
        compile_sql(text)
    assert says in str(refusal.value)
    assert repr(text) in str(refusal.value)


def test_an_expression_may_be_long_and_deep_but_not_too_deep():
    long = compile_sql(" OR ".join(f"a = {number}" for number in range(3_000)))
    assert long.matches({"a": "2999"})
    assert compile_sql("(" * 2_000 + "a = 5" + ")" * 2_000).matches({"a": "5"})
    assert compile_sql("NOT " * (MAX_DEPTH - 3) + "(a = 5)").matches({"a": "5"}) is (MAX_DEPTH % 2 == 1)
    with pytest.raises(InvalidArgumentError, match="at most 200"):
        compile_sql("NOT " * sys.getrecursionlimit() + "(a = 5)")


def test_an_expression_names_the_properties_that_it_looks_at():
    assert compile_sql("a = 5 AND (b IN ('x') OR NOT c) AND a BETWEEN 1 AND d").names == frozenset("abcd")
    assert compile_sql("TRUE").names == frozenset()


@given(st.randoms(use_true_random=False))
def test_any_words_make_an_expression_or_are_refused(chance):
    text = random_words(chance)
    with contextlib.suppress(InvalidArgumentError):
        compile_sql(text).matches({"a": "5", "b": "x"})


# An independent model: conditions as tuples, their text, and what they are by the truth tables of SQL.

NUMBERS = st.integers(-20, 20)
TEXTS = st.text("ab'", max_size=3)
SIGNS = (">", ">=", "<", "<=", "=", "<>")


def quoted(text):
    return "'" + text.replace("'", "''") + "'"


ATOMS = st.one_of(
    st.tuples(st.just("order"), st.sampled_from("nm"), st.sampled_from(SIGNS), NUMBERS),
    st.tuples(st.just("between"), st.sampled_from("nm"), st.booleans(), NUMBERS, NUMBERS),
    st.tuples(st.just("text"), st.sampled_from("st"), st.sampled_from(("=", "<>")), TEXTS),
    st.tuples(st.just("in"), st.sampled_from("st"), st.booleans(), st.lists(TEXTS, min_size=1, max_size=6)),
    st.tuples(st.just("null"), st.sampled_from("nmst"), st.booleans()),
    st.tuples(
        st.just("search"), st.sampled_from("st"), st.booleans(),
        st.sampled_from(("CONTAINS", "STARTSWITH", "ENDSWITH")), TEXTS.filter(bool),
    ),
    st.tuples(st.just("constant"), st.sampled_from((True, False, None))),
)  # fmt: skip
CONDITIONS = st.recursive(
    ATOMS,
    lambda inner: st.one_of(
        st.tuples(st.just("not"), inner),
        st.tuples(st.sampled_from(("and", "or")), st.lists(inner, min_size=2, max_size=4)),
    ),
    max_leaves=8,
)
MESSAGES = st.fixed_dictionaries(
    {}, optional={"n": NUMBERS.map(str), "m": NUMBERS.map(str), "s": TEXTS, "t": TEXTS}
)


def text_of(condition):
    match condition:
        case ("order", name, sign, number):
            return f"{name} {sign} {number}"
        case ("between", name, is_in, low, high):
            low, high = sorted((low, high))
            return f"{name} {'' if is_in else 'NOT '}BETWEEN {low} AND {high}"
        case ("text", name, sign, text):
            return f"{name} {sign} {quoted(text)}"
        case ("in", name, is_in, texts):
            return f"{name} {'' if is_in else 'NOT '}IN ({', '.join(map(quoted, texts))})"
        case ("null", name, is_null):
            return f"{name} IS {'' if is_null else 'NOT '}NULL"
        case ("search", name, is_found, word, text):
            return f"{name} {'' if is_found else 'NOT '}{word} {quoted(text)}"
        case ("constant", value):
            return "NULL" if value is None else str(value).upper()
        case ("not", inner):
            return f"NOT ({text_of(inner)})"
        case (word, parts):
            return f" {word} ".join(f"({text_of(part)})" for part in parts)


def model(condition, message):
    match condition:
        case ("order", name, sign, number):
            if name not in message:
                return None
            value = int(message[name])
            return {
                ">": value > number,
                ">=": value >= number,
                "<": value < number,
                "<=": value <= number,
                "=": value == number,
                "<>": value != number,
            }[sign]
        case ("between", name, is_in, low, high):
            low, high = sorted((low, high))
            return None if name not in message else (low <= int(message[name]) <= high) == is_in
        case ("text", name, sign, text):
            return None if name not in message else (message[name] == text) == (sign == "=")
        case ("in", name, is_in, texts):
            return None if name not in message else (message[name] in texts) == is_in
        case ("null", name, is_null):
            return (name not in message) == is_null
        case ("search", name, is_found, word, text):
            has = {"CONTAINS": str.__contains__, "STARTSWITH": str.startswith, "ENDSWITH": str.endswith}[word]
            return name in message and has(message[name], text) == is_found
        case ("constant", value):
            return value
        case ("not", inner):
            return {True: False, False: True, None: None}[model(inner, message)]
        case ("and", parts):
            found = {model(part, message) for part in parts}
            return False if False in found else None if None in found else True
        case ("or", parts):
            found = {model(part, message) for part in parts}
            return True if True in found else None if None in found else False


@given(CONDITIONS, MESSAGES)
def test_s0_04_conditions_follow_the_truth_tables_of_sql(condition, message):
    expression = compile_sql(text_of(condition))
    expected = model(condition, message)
    assert expression.evaluate(message) is expected
    assert expression.matches(message) is (expected is True)
