"""What a Python worker of Spark keeps from task to task: the modules that it imported.

After each task Spark has the worker look through all of its objects for circles that are not reached any
more. With numpy, pyarrow and the engine imported that is 40 to 80 ms of CPU for nothing, as much as a task
needs that reads 128 MiB of log. Objects of modules stay as long as the worker does, so they are taken out of
that search, once.
"""

from __future__ import annotations

import gc
from typing import Final

_DONE: Final[set[str]] = set()


def keep_modules() -> None:
    """Takes what is there out of the search for circles, in a task; elsewhere it does nothing."""
    from pyspark import TaskContext

    if not _DONE and TaskContext.get() is not None:
        gc.collect()
        gc.freeze()
        _DONE.add("modules")
