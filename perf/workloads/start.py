"""How long it takes until seglog can be used: the import, and the command."""

from __future__ import annotations

import subprocess
import sys
import time
from statistics import median

from perf.figures.sample import Sample
from perf.plan.budget import Budget
from perf.sampling.stopwatch import Stopwatch

_EMPTY = ("-c", "pass")
_IMPORT = ("-c", "import seglog")
_HELP = ("-c", "from seglog.cli.main import main; main()", "--help")


def time_starts(budget: Budget) -> Sample:
    """Starts interpreters in turn: empty, with the import, with the command's help."""
    watch = Stopwatch()
    taken = [(_start_ms(_EMPTY), _start_ms(_IMPORT), _start_ms(_HELP)) for _ in range(budget.starts)]
    return watch.sample(
        3 * budget.starts,
        import_ms=median(imported - empty for empty, imported, _ in taken),
        help_ms=median(helped for _, _, helped in taken),
    )


def _start_ms(arguments: tuple[str, ...]) -> float:
    begun = time.perf_counter()
    subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL)
    return (time.perf_counter() - begun) * 1e3
