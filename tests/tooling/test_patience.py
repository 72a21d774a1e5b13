"""Tests wait in one way, with one patience, and start what outlives a call in one way.

A wait with a limit of its own fails where the machine is busy, and its failure does not say that it was only
late. The limits are in :mod:`tests.support.machine.patience`, the processes in
:mod:`tests.support.machine.children`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parents[1]
PATIENCE = "support/machine/patience.py"
CHILDREN = "support/machine/children.py"

NAMES_OF_WAITS = {"wait_until", "until", "eventually"}
CLOCKS = {"monotonic", "monotonic_ns", "perf_counter", "perf_counter_ns", "time", "time_ns"}
FIRST_IS_LIMIT = {"join", "wait", "result", "settimeout", "timeout"}
"""Calls of threads, processes, events, futures, sockets and asyncio whose first argument is a limit."""
SECOND_IS_LIMIT = {"wait_for"}

EXPECTED = {
    "interop/clients/test_java_members.py": {"_run": "pauses between two turns until it is over"},
    "interop/cpp/site.py": dict.fromkeys(
        ("__init__", "_sent", "wait"), "a process that is given its limit, by the patience of who starts it"
    ),
    "interop/judging/toolchain.py": dict.fromkeys(
        ("missing_tool", "_ask_go", "_archive", "_run"), "builds, also for perf, which runs without pytest"
    ),
}
"""Waits that are no waits for something: module → the function that has one → why."""


def named(call: ast.Call) -> str:
    """Returns the last part of the name of what is called."""
    if isinstance(call.func, ast.Attribute):
        return call.func.attr
    return call.func.id if isinstance(call.func, ast.Name) else ""


def calls_in(node: ast.AST) -> Iterator[ast.Call]:
    """Yields the calls within a node."""
    return (one for one in ast.walk(node) if isinstance(one, ast.Call))


def limits_of(call: ast.Call) -> Iterator[ast.expr]:
    """Yields the arguments of a call that limit how long it waits."""
    name = named(call)
    if name in FIRST_IS_LIMIT and len(call.args) == 1:
        yield call.args[0]
    if len(call.args) == 2 and (name in SECOND_IS_LIMIT or (name == "get" and is_true(call.args[0]))):
        yield call.args[1]
    yield from (keyword.value for keyword in call.keywords if keyword.arg == "timeout")


def is_true(node: ast.expr) -> bool:
    """Returns whether an expression is True: of a queue, that it waits."""
    return isinstance(node, ast.Constant) and node.value is True


def is_patient(call: ast.Call) -> bool:
    """Returns whether the limit of a call is that of the one patience."""
    return any("patience_s(" in ast.unparse(limit) for limit in limits_of(call))


def numbers_of(module: ast.Module) -> set[str]:
    """Returns the constants of a module that are numbers, and the parameters that are one by default."""
    names = set()
    for node in ast.walk(module):
        if isinstance(node, ast.arguments):
            ending = [*node.posonlyargs, *node.args][-len(node.defaults) :] if node.defaults else []
            pairs = [
                *zip(ending, node.defaults, strict=True),
                *zip(node.kwonlyargs, node.kw_defaults, strict=True),
            ]
            names |= {one.arg for one, default in pairs if default is not None and is_number(default, set())}
    for node in module.body:
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value and is_number(node.value, set()):
            targets = [node.target] if isinstance(node, ast.AnnAssign) else node.targets
            names |= {target.id for target in targets if isinstance(target, ast.Name)}
    return names


def is_number(node: ast.expr, names: set[str]) -> bool:
    """Returns whether an expression is a number that is written there; zero limits a look, and no wait."""
    if isinstance(node, ast.BinOp):
        return is_number(node.left, names) and is_number(node.right, names)
    if isinstance(node, ast.Name):
        return node.id in names
    return isinstance(node, ast.Constant) and type(node.value) in (int, float) and node.value != 0


def has_own_end(loop: ast.While | ast.For | ast.AsyncFor) -> bool:
    """Returns whether a loop pauses, and ends once a clock or a number of looks says so."""
    if not any(named(call) in {"sleep", "wait", "delay"} for call in calls_in(loop)):
        return False
    compared = (one for one in ast.walk(loop) if isinstance(one, ast.Compare))
    if any(named(call) in CLOCKS for one in compared for call in calls_in(one)):
        return True
    if isinstance(loop, ast.While) or not isinstance(loop.iter, ast.Call) or named(loop.iter) != "range":
        return False
    return any(isinstance(one, ast.Break | ast.Return) for one in ast.walk(loop))


class Finder:
    """Finds the waits of a module that are not those of the one patience, by the function that has each."""

    def __init__(self, module: ast.Module) -> None:
        self.found: dict[str, list[str]] = {}
        self._numbers = numbers_of(module)
        self._look(module, "")

    def _look(self, node: ast.AST, function: str) -> None:
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                function = function or node.name
            case ast.Assert(test=ast.UnaryOp(op=ast.Not())):
                return  # what must not come is awaited for a short time of the test's own
            case ast.With() | ast.AsyncWith():
                if any("raises(" in ast.unparse(item.context_expr) for item in node.items):
                    return  # the time-out is what the test asks for
            case ast.Assert(test=ast.Call() as call):
                if named(call) in {"wait", "acquire"} and is_patient(call):
                    self._add(function, node, "its failure is no LateError")
            case ast.While() | ast.For() | ast.AsyncFor():
                if has_own_end(node) or function in NAMES_OF_WAITS:
                    self._add(function, node, "a loop with an end of its own")
            case ast.Call():
                self._look_at_call(node, function)
        for one in ast.iter_child_nodes(node):
            self._look(one, function)

    def _look_at_call(self, call: ast.Call, function: str) -> None:
        if named(call) == "Popen":
            self._add(function, call, "a process is started")
        elif named(call) in {"join", "wait_for"} and is_patient(call):
            self._add(function, call, "its failure is no LateError")
        elif any(is_number(limit, self._numbers) for limit in limits_of(call)):
            self._add(function, call, ast.unparse(call)[:90])

    def _add(self, function: str, node: ast.stmt | ast.expr, what: str) -> None:
        self.found.setdefault(function, []).append(f"{node.lineno}: {what}")


def own_waits(source: str) -> dict[str, list[str]]:
    """Returns what a module waits with or starts besides the one way, by its functions."""
    return Finder(ast.parse(source)).found


@cache
def waits_of_tests() -> dict[str, dict[str, list[str]]]:
    """Returns the same of all modules of tests that have something."""
    found = {}
    for path in sorted(TESTS.rglob("*.py")):
        name = path.relative_to(TESTS).as_posix()
        if name not in {PATIENCE, CHILDREN} and (waits := own_waits(path.read_text())):
            found[name] = waits
    return found


def test_a_test_waits_with_the_one_patience():
    expected = {(module, function) for module, functions in EXPECTED.items() for function in functions}
    wrong = {
        f"tests/{module}:{wait}"
        for module, functions in waits_of_tests().items()
        for function, waits in functions.items()
        if (module, function) not in expected
        for wait in waits
    }
    assert wrong == set(), "see tests/support/machine/patience.py and children.py, the fixture start_child"


def test_no_exception_is_left_over():
    found = waits_of_tests()
    needless = {
        f"{module}: {function}"
        for module, functions in EXPECTED.items()
        for function in functions
        if function not in found.get(module, {})
    }
    assert needless == set()


@pytest.mark.parametrize(
    "lines",
    [
        "thread.join(5)",
        "assert event.wait(5)",
        "LIMIT_S = 30\nevent.wait(LIMIT_S)",
        "def f(limit_s=30):\n    event.wait(limit_s)",
        "def f(*, limit_s=30):\n    event.wait(limit_s)",
        "items.get(timeout=5)",
        "items.get(True, 5)",
        "future.result(2 * 5)",
        "subprocess.run(words, timeout=60)",
        "process.communicate(timeout=60)",
        "await asyncio.wait_for(task, 5)",
        "async def f():\n    async with asyncio.timeout(5):\n        await task",
        "one.settimeout(5)",
        "while time.monotonic() < end:\n    time.sleep(0.1)",
        "while not done():\n    assert clock.monotonic() - begun < 5\n    time.sleep(0.1)",
        "for _ in range(100):\n    if done():\n        break\n    time.sleep(0.1)",
        "def wait_until(is_so):\n    while not is_so():\n        pass",
        "subprocess.Popen(words)",
        "with Popen(words) as one:\n    pass",
        "thread.join(patience_s(5))",
        "assert event.wait(patience_s(5))",
        "assert lock.acquire(timeout=patience_s(5))",
        "await asyncio.wait_for(task, patience_s(5))",
    ],
)
def test_a_wait_of_its_own_is_seen(lines):
    assert own_waits(lines)


@pytest.mark.parametrize(
    "lines",
    [
        "join_thread(thread)",
        "wait_for_event(event)",
        "process.wait(patience_s(5))",
        "items.get(timeout=patience_s(5))",
        "assert not event.wait(0.2)",
        "with pytest.raises(TimeoutError):\n    future.result(0.2)",
        "event.wait(0)",
        "', '.join(words)",
        "table.get(key, 5)",
        "for waited_s in looks('the file'):\n    if waited_s > 5:\n        break",
        "def wait_until(is_so):\n    patience.wait_until(is_so)",
        "while time.monotonic() < end:\n    store.put(message)",
        "for _ in range(3):\n    time.sleep(0.1)",
        "subprocess.run(words, timeout=patience_s(60))",
    ],
)
def test_other_waits_are_not(lines):
    assert not own_waits(lines)
