"""Random SQL92 expressions and the properties to try them on: sound ones, and words thrown together."""

from __future__ import annotations

import random

NAMES = ("a", "b", "c", "INDEX", "_x$1")
STRINGS = ("", "5", "abc", "true", "it''s", "b", "5.0", " 7 ", "é")
NUMBERS = (
    "0", "5", "-5", "7", "2147483647", "2147483648", "-2147483649", "9223372036854775807", "5L", "007",
    "5.0", "5.", ".5", "5e2", "1E-3", "0.0", "9223372036854775808", "1e400", "-7.5",
)  # fmt: skip
VALUES = (
    "", "5", "+5", "-5", "5.0", "7", " 7 ", "abc", "b", "true", "TRUE", "tru", "NaN", "Infinity",
    "-Infinity", "1e3", "5d", "5F", "0x1p3", "0x1.8P1", "0x1p99999", "2147483648", "-2147483649",
    "9223372036854775807", "9223372036854775808", "99999999999999999999999", "-0.0", "0", "1_000",
    "\u0663", "\U0001d7e7", "5e", "it's", "\u00a05", "-", "1e99999",
)  # fmt: skip
ORDERS = (">", ">=", "<", "<=")
SEARCHES = ("CONTAINS", "StartsWith", "endswith")
WORDS = (
    *NAMES, *NUMBERS, *ORDERS, *SEARCHES, "=", "<>", "(", ")", ",", "AND", "or", "NOT", "IN", "BETWEEN",
    "IS", "NULL", "TRUE", "false", "'x'", "''", "-", "+", "/* c */", "-- c\n", "'", "#", "*",
)  # fmt: skip


def random_properties(chance: random.Random) -> dict[str, str]:
    """Returns properties of a message; each name is missing now and then."""
    return {name: chance.choice(VALUES) for name in NAMES if chance.random() < 0.75}


def random_words(chance: random.Random) -> str:
    """Returns words in any order, hardly ever an expression."""
    return " ".join(chance.choices(WORDS, k=chance.randint(1, 8)))


def random_expression(chance: random.Random, depth: int = 3) -> str:
    """Returns an expression that mostly makes sense: types and constants may still not fit."""
    if depth and chance.random() < 0.6:
        left, right = random_expression(chance, depth - 1), random_expression(chance, depth - 1)
        return chance.choice(
            (f"{left} AND {right}", f"{left} or {right}", f"NOT ({left})", f"({left}) AND NOT({right})",
             f"({left}) OR ({right})", f"({left}) = ({right})", f"({left}) <> TRUE", f"({left}) IS NULL",
             f"({left}) is not null", f"NOT {left}")
        )  # fmt: skip
    return _leaf(chance)


def _leaf(chance: random.Random) -> str:
    name = chance.choice(NAMES)
    negation = chance.choice(("", "NOT "))
    text = f"'{chance.choice(STRINGS)}'"
    texts = ", ".join(f"'{chance.choice(STRINGS)}'" for _ in range(chance.randint(1, 6)))
    low, high = _operand(chance), _operand(chance)
    return chance.choice(
        (
            f"{name} {chance.choice(ORDERS)} {low}",
            f"{low} {chance.choice(ORDERS)} {high}",
            f"{name} = {text}",
            f"{low} {chance.choice(('=', '<>'))} {high}",
            f"{text} = {name}",
            f"{name} = {chance.choice(('TRUE', 'false', 'NULL', low))}",
            f"{chance.choice(('TRUE', 'FALSE'))} = {chance.choice((name, text, low))}",
            f"{name} {negation}BETWEEN {low} AND {high}",
            f"{low} {negation}between {name} and {high}",
            f"{name} {negation}IN ({texts})",
            f"{name} {negation}{chance.choice(SEARCHES)} {text}",
            f"{low} {negation}{chance.choice(SEARCHES)} {text}",
            f"{name} IS {negation}NULL",
            f"{low} IS {negation}NULL",
            name,
            chance.choice(("TRUE", "FALSE", "NULL")),
            f"-{name} > 3",
            f"-(-{low}) = {high}",
            f"+{name} IN ({texts})",
        )
    )


def _operand(chance: random.Random) -> str:
    return chance.choice((chance.choice(NUMBERS), chance.choice(NUMBERS), chance.choice(NAMES)))
