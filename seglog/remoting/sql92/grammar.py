"""From text to expression: the grammar, and which part each rule makes.

``NOT`` binds more tightly than comparisons, as in RocketMQ: ``NOT a = 'x'`` is ``(NOT a) = 'x'``.

Source: ``filter/src/main/javacc/SelectorParser.jj``. Difference: the whole text must be an expression, where
RocketMQ takes the longest beginning that is one and drops the rest without a word (``a = 1 ADN b = 2``).
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Final, cast

from lark import Lark, Token, Transformer, v_args
from lark.exceptions import UnexpectedCharacters, UnexpectedInput

from seglog.errors import InvalidArgumentError
from seglog.remoting.sql92 import nodes
from seglog.remoting.sql92.nodes import Node
from seglog.remoting.sql92.values import INT_LIMIT, LONG_LIMIT, IncomparableError, Long, Properties, Value

_KEYWORDS: Final = (
    "NOT", "AND", "OR", "BETWEEN", "IN", "TRUE", "FALSE", "NULL", "IS", "CONTAINS", "STARTSWITH", "ENDSWITH",
)  # fmt: skip
_RULES: Final = r"""
?start: either
?either: both (_OR both)*
?both: equality (_AND equality)*
?equality: comparison
    | equality "=" comparison -> equal
    | equality "<>" comparison -> unequal
    | equality _IS _NULL -> is_null
    | equality _IS _NOT _NULL -> is_not_null
?comparison: unary
    | comparison ">" unary -> greater
    | comparison ">=" unary -> not_less
    | comparison "<" unary -> less
    | comparison "<=" unary -> not_greater
    | comparison _CONTAINS STRING -> contains
    | comparison _NOT _CONTAINS STRING -> contains_not
    | comparison _STARTSWITH STRING -> starts_with
    | comparison _NOT _STARTSWITH STRING -> starts_not_with
    | comparison _ENDSWITH STRING -> ends_with
    | comparison _NOT _ENDSWITH STRING -> ends_not_with
    | comparison _BETWEEN unary _AND unary -> between
    | comparison _NOT _BETWEEN unary _AND unary -> outside
    | comparison _IN "(" STRING ("," STRING)* ")" -> one_of
    | comparison _NOT _IN "(" STRING ("," STRING)* ")" -> none_of
?unary: "+" unary
    | "-" unary -> negated
    | _NOT unary -> inverted
    | primary
?primary: STRING -> text
    | WHOLE -> whole
    | FLOAT -> floating
    | _TRUE -> true
    | _FALSE -> false
    | _NULL -> null
    | NAME -> name
    | "(" either ")"

STRING: /'(?:''|[^'])*'/
FLOAT.2: /[0-9]+\.[0-9]*(?:[eE][+-]?[0-9]+)?|\.[0-9]+(?:[eE][+-]?[0-9]+)?|[0-9]+[eE][+-]?[0-9]+/
WHOLE.1: /0|[1-9][0-9]*[lL]?/
NAME: /[a-zA-Z_$][a-zA-Z0-9_$]*/
%ignore /[ \t\n\r\f]+/
%ignore /\/\*[^*]*\*(?:\*|[^*\/][^*]*\*)*\//
"""

_OPAQUE: Final = re.compile(r"'(?:''|[^'])*(?:'|\Z)|--[^\n\r]*|/\*(?:[^*]|\*(?!/))*(?:\*/|\Z)")
"""What no other of its kind begins in: a string, a comment up to an end of line, one between stars."""


@dataclass(frozen=True, slots=True)
class SqlExpression:
    """An expression that can be asked about messages. Any thread may ask.

    Attributes:
        text: As it was given.
        names: Of the properties that it looks at.
        evaluate: Its truth for some properties, None where that is unknown; raises ``IncomparableError``.
    """

    text: str
    names: frozenset[str]
    evaluate: Callable[[Properties], Value]

    def matches(self, properties: Properties) -> bool:
        """Returns whether a message with these properties is wanted: only what is true is."""
        try:
            return self.evaluate(properties) is True
        except IncomparableError:
            return False


def compile_sql(text: str) -> SqlExpression:
    """Returns the expression that a text is.

    Raises:
        InvalidArgumentError: It is none; the message says where and why.
    """
    try:
        # lark says that it returns a tree, even if the rules make something else.
        node = nodes.as_condition(cast("Node", _parser().parse(_without_line_comments(text))))
    except UnexpectedInput as error:
        raise InvalidArgumentError(f"{_problem(error)} of the SQL92 expression {text!r}") from error
    return SqlExpression(text, node.names, node.evaluate)


@v_args(inline=True)
class _Parts(Transformer[Token, Node]):
    """Makes a part of each rule that was found, bottom up."""

    def either(self, *parts: Node) -> Node:
        return nodes.disjunction(parts)

    def both(self, *parts: Node) -> Node:
        return nodes.conjunction(parts)

    def equal(self, left: Node, right: Node) -> Node:
        return nodes.equal(left, right)

    def unequal(self, left: Node, right: Node) -> Node:
        return nodes.inverted(nodes.equal(left, right))

    def is_null(self, left: Node) -> Node:
        return nodes.is_null(left)

    def is_not_null(self, left: Node) -> Node:
        return nodes.inverted(nodes.is_null(left))

    def greater(self, left: Node, right: Node) -> Node:
        return nodes.ordered(left, right, lambda order: order > 0)

    def not_less(self, left: Node, right: Node) -> Node:
        return nodes.ordered(left, right, lambda order: order >= 0)

    def less(self, left: Node, right: Node) -> Node:
        return nodes.ordered(left, right, lambda order: order < 0)

    def not_greater(self, left: Node, right: Node) -> Node:
        return nodes.ordered(left, right, lambda order: order <= 0)

    def contains(self, left: Node, text: Token) -> Node:
        return nodes.searched(left, _unquoted(text), operator.contains, is_found=True)

    def contains_not(self, left: Node, text: Token) -> Node:
        return nodes.searched(left, _unquoted(text), operator.contains, is_found=False)

    def starts_with(self, left: Node, text: Token) -> Node:
        return nodes.searched(left, _unquoted(text), str.startswith, is_found=True)

    def starts_not_with(self, left: Node, text: Token) -> Node:
        return nodes.searched(left, _unquoted(text), str.startswith, is_found=False)

    def ends_with(self, left: Node, text: Token) -> Node:
        return nodes.searched(left, _unquoted(text), str.endswith, is_found=True)

    def ends_not_with(self, left: Node, text: Token) -> Node:
        return nodes.searched(left, _unquoted(text), str.endswith, is_found=False)

    def between(self, value: Node, low: Node, high: Node) -> Node:
        return nodes.between(value, low, high)

    def outside(self, value: Node, low: Node, high: Node) -> Node:
        return nodes.outside(value, low, high)

    def one_of(self, value: Node, *texts: Token) -> Node:
        return nodes.one_of(value, [_unquoted(text) for text in texts], is_in=True)

    def none_of(self, value: Node, *texts: Token) -> Node:
        return nodes.one_of(value, [_unquoted(text) for text in texts], is_in=False)

    def negated(self, right: Node) -> Node:
        return nodes.negated(right)

    def inverted(self, right: Node) -> Node:
        return nodes.inverted(right)

    def text(self, text: Token) -> Node:
        return nodes.new_constant(_unquoted(text))

    def whole(self, text: Token) -> Node:
        digits = text.rstrip("lL")
        number = int(digits) if len(digits) <= 19 else LONG_LIMIT
        if number >= LONG_LIMIT:
            raise InvalidArgumentError(f"64 bits are too few for {digits[:40]}")
        return nodes.new_constant(number if number < INT_LIMIT else Long(number))

    def floating(self, text: Token) -> Node:
        number = float(text)
        if not 0 < number < math.inf:
            raise InvalidArgumentError(f"{text[:40]} is too small or too large", help="RocketMQ takes no 0.0")
        return nodes.new_constant(number)

    def true(self) -> Node:
        return nodes.new_constant(value=True)

    def false(self) -> Node:
        return nodes.new_constant(value=False)

    def null(self) -> Node:
        return nodes.new_constant(None)

    def name(self, name: Token) -> Node:
        return nodes.new_property(str(name))


@cache
def _parser() -> Lark:
    """Returns the parser, which is made with the first expression; any thread may use it."""
    # The whole keyword, in letters of any case: lark's own flag for that takes letters for others that are
    # none in RocketMQ's grammar, such as the Kelvin sign for K.
    keywords = "\n".join(
        f"_{word}.3: /{''.join(f'[{letter}{letter.lower()}]' for letter in word)}(?![a-zA-Z0-9_$])/"
        for word in _KEYWORDS
    )
    # A lexer that knew the rules would take AND for a property's name where no other word can be.
    return Lark(f"{_RULES}\n{keywords}\n", parser="lalr", lexer="basic", transformer=_Parts())


def _without_line_comments(text: str) -> str:
    """Returns a text with blanks for its comments up to an end of line.

    Without such an end ``--`` is two signs; a rule of the lexer would look for it from each ``--`` on.
    """
    last = max(text.rfind("\n"), text.rfind("\r"))
    pieces: list[str] = []
    at = 0
    for found in _OPAQUE.finditer(text):
        if found.start() > last:
            break
        if found[0].startswith("--"):
            pieces += text[at : found.start()], " " * len(found[0])
            at = found.end()
    return "".join((*pieces, text[at:]))


def _unquoted(text: Token) -> str:
    return text[1:-1].replace("''", "'")


def _problem(error: UnexpectedInput) -> str:
    if isinstance(error, UnexpectedCharacters):
        return f"unexpected {error.char!r} at column {error.column}"
    token = getattr(error, "token", None)
    if token is None or not token:
        return "unexpected end"
    return f"unexpected {str(token)!r} at column {error.column}"
