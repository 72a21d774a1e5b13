"""The package has no function, class or constant that nothing but a test uses.

What counts as a use: in its own module, the name outside of its own definition; elsewhere in the package or
in ``tools/``, an import of it, or an attribute of a module of that name. Of a method, any mention of it. What
a room exports is used where it is imported from the room. A word in a string counts too, except in docstrings
and in ``__all__``: grammars, commands and lazy imports name things so.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import seglog
import seglog.testing

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "seglog"
KERNELS = PACKAGE / "storage" / "kernels" / "native"
Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef

PUBLIC = {*seglog.__all__, *(name for name in vars(seglog.testing) if not name.startswith("_"))}
FACES = {
    "QueueView": "what MessageStore.queue returns",
    "AsyncCalls": "calls of MessageStore",
    "Lookups": "calls of MessageStore",
    "Waits": "calls of MessageStore",
    "Consumer": "calls of OrderlyConsumer and PushConsumer",
    "AsyncConsumer": "calls of their awaited faces",
}
"""Classes besides the public ones whose methods users call."""
ALLOWED = {
    "Codec": "what the ends of connections are made of",
    "receive": "of the same",
    "begun_bytes": "of the same: how much of a frame a connection keeps",
    **dict.fromkeys(
        (
            "AllocateAveragelyByCircle",
            "AllocateByConfig",
            "AllocateByMachineRoom",
            "AllocateConsistentHash",
            "AllocateMachineRoomNearby",
        ),
        "what users choose from: how a group shares its queues",
    ),
    "connection_made": "asyncio calls it",
    "data_received": "asyncio calls it",
    "pause_writing": "asyncio calls it",
    "resume_writing": "asyncio calls it",
    "connection_lost": "asyncio calls it",
    "encode_batch": "with its other half, the form of a batch",
    "_missing_": "enum calls it",
    "NoPermissionError": "what a hook that users write raises; docs/embedded.md shows one",
    "lazy": "docs/store.md shows it: a scan as a frame of Polars",
    "queue_batch": "docs/store.md names its module: a queue as Arrow",
    "COMPRESSION_ZLIB": "with its like, the values of COMPRESSION_MASK",
    "EXT_END": "a table of docs/FORMAT.md",
    "seglog_broker": "a fixture of the pytest plugin",
    "seglog_server": "a fixture of the pytest plugin",
    "convert": "click calls it",
    "make_context": "click calls it",
    "list_commands": "click calls it",
    "get_command": "click calls it",
    "resolve_command": "click calls it",
    "format_commands": "click calls it",
    "streamReader": "Spark calls it",
    "streamWriter": "Spark calls it",
    "pushFilters": "Spark calls it",
    "initialOffset": "Spark calls it",
    "getDefaultReadLimit": "Spark calls it",
    "prepareForTriggerAvailableNow": "Spark calls it",
    "latestOffset": "Spark calls it",
}


@dataclass(frozen=True)
class Defined:
    """A name that a module defines: ``owner`` is its class, empty at the module's level."""

    module: Path
    owner: str
    name: str
    node: ast.AST


def dotted_name(module: Path) -> str:
    """Returns what a module is imported as."""
    return ".".join(module.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


def words_of(node: ast.AST) -> Iterator[str]:
    """Yields every name that code uses, and every word of its strings but docstrings."""
    passed_over = {id(name) for names in lists_of_names(node) for name in ast.walk(names)}
    for one in ast.walk(node):
        if isinstance(one, ast.Module | Definition):  # its docstring comes behind it
            if one.body and isinstance(one.body[0], ast.Expr):
                passed_over.add(id(one.body[0].value))
        elif isinstance(one, ast.Name) and isinstance(one.ctx, ast.Load):
            yield one.id
        elif isinstance(one, ast.Attribute):
            yield one.attr
        elif isinstance(one, ast.Constant) and isinstance(one.value, str) and id(one) not in passed_over:
            yield from re.findall(r"\w+", one.value)


def defined_in(module: Path, tree: ast.Module) -> Iterator[Defined]:
    """Yields functions, classes and constants of a module, and the methods of its classes."""
    for node in tree.body:
        if isinstance(node, Definition):
            if not any("command" in ast.unparse(one) for one in node.decorator_list):
                yield Defined(module, "", node.name, node)
            if isinstance(node, ast.ClassDef):
                for method in node.body:
                    if isinstance(method, ast.FunctionDef | ast.AsyncFunctionDef):
                        yield Defined(module, node.name, method.name, method)
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            for target in [node.target] if isinstance(node, ast.AnnAssign) else node.targets:
                if isinstance(target, ast.Name):
                    yield Defined(module, "", target.id, node)


def lists_of_names(node: ast.AST) -> list[ast.expr]:
    """Returns what is assigned to ``__all__``."""
    body = node.body if isinstance(node, ast.Module) else []
    return [
        one.value for one in body if isinstance(one, ast.Assign) and "__all__" in map(name_of, one.targets)
    ]


def name_of(target: ast.expr) -> str:
    """Returns the name that is assigned to, if it is one."""
    return target.id if isinstance(target, ast.Name) else ""


def exported_by(tree: ast.Module) -> set[str]:
    """Returns what ``__all__`` names, and the module itself does not use."""
    listed = {str(name) for names in lists_of_names(tree) for name in ast.literal_eval(names)}
    return listed - {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)} if listed else set()


def taken_by(tree: ast.Module) -> Iterator[str]:
    """Yields the dotted names that a module imports, and those that it reaches through an imported module."""
    bound, reached = {}, set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            bound |= {alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            reached.add((node.value.id, node.attr))
    exported = exported_by(tree)
    yield from (dotted for name, dotted in bound.items() if name not in exported)
    yield from (f"{bound[name]}.{attribute}" for name, attribute in reached if name in bound)


def is_exempt(one: Defined, in_kernels: str) -> bool:
    """Returns whether users, C or a framework use a name."""
    is_of_c = re.search(rf"\bSEGLOG_{one.name}\b", in_kernels) is not None
    is_public = one.owner in PUBLIC | FACES.keys() or one.name in PUBLIC | ALLOWED.keys()
    return one.name.startswith("__") or is_of_c or is_public


def test_what_the_package_defines_it_uses():
    modules = sorted(PACKAGE.rglob("*.py"))
    tools = [
        path
        for path in (ROOT / "tools").iterdir()
        if path.is_file() and path.read_text().startswith("#!/usr/bin/env python3")
    ]
    trees = {path: ast.parse(path.read_text()) for path in [*modules, *tools]}
    rooms = [dotted_name(path) for path in modules if exported_by(trees[path])]
    own = {path: Counter(words_of(tree)) for path, tree in trees.items()}
    everywhere: Counter[str] = Counter()
    for words in own.values():
        everywhere.update(words)
    taken = {name for tree in trees.values() for name in taken_by(tree)}
    in_kernels = "".join(path.read_text() for path in sorted(KERNELS.glob("*.[ch]")))
    unused = []
    for one in (one for path in modules for one in defined_in(path, trees[path])):
        dotted = dotted_name(one.module)
        if one.owner:
            # What other modules mention is mentioned outside of the definition, which need not be walked.
            is_used = everywhere[one.name] > own[one.module][one.name]
        else:
            exports = [f"{room}.{one.name}" for room in rooms if dotted.startswith(f"{room}.")]
            is_used = not taken.isdisjoint([f"{dotted}.{one.name}", *exports])
        if not is_used:
            is_used = own[one.module][one.name] > Counter(words_of(one.node))[one.name]
        if not is_used and not is_exempt(one, in_kernels):
            unused.append(f"{one.module.relative_to(ROOT)}: {one.owner or one.name}.{one.name}")
    assert not unused, "\n".join(["use it, or move it to tests/support:", *unused])
