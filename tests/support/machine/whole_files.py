"""How several processes share the tests: a file is one's as a whole; those that need Spark are one's."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Final

from typing_extensions import override
from xdist.scheduler import LoadFileScheduling
from xdist.workermanage import WorkerController

from tests.support.machine.order import SESSION, needs_session

_LEAST_KNOWN: Final = 2


class WholeFiles(LoadFileScheduling):  # type: ignore[misc]  # xdist has no types
    """The scheduler of xdist by files, but what ended a process is not run again.

    xdist gives the rest of that file to another process, with the test that ended the first: one that hangs
    until its time is up would end the next one too, and the whole run would hang.

    That a process has ended is known some time later only, and the one in its place can work when it has
    collected the tests; xdist would end the whole run where either is given work before, and wait for ever
    where the new one is given a single test.
    """

    @override
    def _split_scope(self, nodeid: str) -> str:
        file: str = super()._split_scope(nodeid)
        return SESSION if needs_session(file, self.config.rootpath) else file

    @override
    def add_node_collection(self, node: WorkerController, collection: Sequence[str]) -> None:
        if node in self.nodes:  # else it was ready when no work was left, and was told to end
            super().add_node_collection(node, collection)

    @override
    def _reschedule(self, node: WorkerController) -> None:
        # One that has not collected is called for again when it has.
        if node not in self.registered_collections:
            return
        # A process runs a test once it knows the next one: with one test alone it would wait for ever.
        super()._reschedule(node)
        while self._pending_of(self.assigned_work[node]) < _LEAST_KNOWN and not node.shutting_down:
            super()._reschedule(node)

    @override
    def _assign_work_unit(self, node: WorkerController) -> None:
        with suppress(OSError):  # the process has ended: remove_node() gives the work to another
            super()._assign_work_unit(node)

    @override
    def remove_node(self, node: WorkerController) -> str | None:
        units: dict[str, dict[str, bool]] = self.assigned_work[node]
        left = [(unit, nodeid) for unit in units.values() for nodeid, is_done in unit.items() if not is_done]
        ended_by = None
        if left:
            unit, ended_by = left[0]
            unit[ended_by] = True
        for name in [name for name, unit in units.items() if all(unit.values())]:
            del units[name]  # a process that gets nothing to run asks for nothing more
        super().remove_node(node)
        return ended_by
