"""Decides which SQL is allowed: queries, and statements that show something.

Spark's own parser decides, not the words: a text is a query if its grammar accepts it as one. Allowed
statements are those that show or describe, and ``EXPLAIN`` of a query: when Spark explains some statements
(``EXECUTE IMMEDIATE``, ``CALL``) it carries them out. A query that would run a command or a method of Java is
refused too.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from py4j.java_gateway import JavaObject
    from pyspark.sql import DataFrame, SparkSession

_ANY_PLAN: Final = "org.apache.spark.sql.catalyst.plans.QueryPlan"
_WITH_PLAN: Final = "org.apache.spark.sql.catalyst.expressions.PlanExpression"
"""An expression that contains a query."""
_PLANS: Final = "org.apache.spark.sql.catalyst.plans.logical"
_SHOWING: Final = ("Show", "Describe", "List")
_EXPLAIN: Final = "ExplainCommand"
_DOING: Final = frozenset({"InsertIntoStatement", "InsertIntoDir", "UnresolvedExecuteImmediate", "Call"})
"""Plans that change something, though Spark does not class them as commands."""
_RUNNING: Final = {
    "ScriptTransformation": "TRANSFORM … USING, which runs a command",
    "CallMethodViaReflection": "reflect or java_method, which runs a method of Java",
}
_SAID_BY_SPARK: Final = re.compile(
    r"\[[\w.]+\] (.+?) SQLSTATE: \w+(?:[;\s]*\(?(line \d+,? pos \d+))?", re.DOTALL
)
_OF_PYTHON: Final = "Traceback (most recent call last)"
"""Part of Spark's message when a Python data source fails: this is no fault of the query."""


@contextmanager
def refused_as(refusal: Callable[[str], Exception]) -> Iterator[None]:
    """Within the block, an error of Spark's parser or of its name resolution is raised without Spark's plans.

    Args:
        refusal: Makes the error from its text.
    """
    from pyspark.errors import AnalysisException

    try:
        yield
    except AnalysisException as error:
        said = _SAID_BY_SPARK.search(str(error))
        if said is None or _OF_PYTHON in str(error):
            raise
        text, place = said.group(1), said.group(2)
        raise refusal(f"QUERY: {text.strip()}{f' ({place})' if place else ''}") from error


def doing_of(spark: SparkSession, text: str) -> str | None:
    """Returns Spark's name of a statement that changes something; None for one that only reads.

    The statement is not run, and its names are not resolved.

    Args:
        spark: The session.
        text: One statement.

    Raises:
        ParseException: The text is no SQL of Spark.
    """
    from pyspark.errors import ParseException

    parser = spark._jsparkSession.sessionState().sqlParser()
    try:
        parser.parseQuery(text.rstrip().removesuffix(";"))
    except ParseException:
        plan = parser.parsePlan(text)
    else:
        return None
    name: str = plan.getClass().getSimpleName()
    if name == _EXPLAIN:
        commands = plan.getClass().forName(f"{_PLANS}.Command")
        return _doing_within(plan.logicalPlan(), commands)
    return None if name.startswith(_SHOWING) else name


def running_of(frame: DataFrame) -> str | None:
    """Returns the foreign code that a query would run, by name; None if it only reads.

    Spark has resolved its names, so a quoted or computed name is found as well.

    Args:
        frame: A query that was not run yet.
    """
    plan = frame._jdf.queryExecution().analyzed()
    kinds = plan.getClass()
    return _running_within(plan, kinds.forName(_ANY_PLAN), kinds.forName(_WITH_PLAN))


def _running_within(node: JavaObject, any_plan: JavaObject, with_plan: JavaObject) -> str | None:
    if (running := _RUNNING.get(node.getClass().getSimpleName())) is not None:
        return running
    parts = [node.children()]
    if any_plan.isInstance(node):
        parts.append(node.expressions())
    within = [part.apply(at) for part in parts for at in range(part.size())]
    if with_plan.isInstance(node):
        within.append(node.plan())
    found = (_running_within(one, any_plan, with_plan) for one in within)
    return next((running for running in found if running is not None), None)


def _doing_within(plan: JavaObject, commands: JavaObject) -> str | None:
    name: str = plan.getClass().getSimpleName()
    if name in _DOING or commands.isInstance(plan):
        return name
    children = plan.children()
    within = (_doing_within(children.apply(at), commands) for at in range(children.size()))
    return next((found for found in within if found is not None), None)
