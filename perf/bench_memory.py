"""Anonymous memory of the commands that read a whole store, at its peak: ``python -m perf.bench_memory``.

Of two stores: one of long files that are mostly holes, with a damage in each tenth, and one of many small
messages. Each is rebuilt in a folder that is removed afterwards.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
from pathlib import Path
from typing import Final

from tests.support.machine.memory import Measured, measure, whole_store_commands
from tests.support.material.big_stores import damage, make_small, make_sparse

_EACH_TENTH: Final = 10


def main() -> None:
    """Measures as the command line says, and prints a line for each run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--segments", type=int, default=6)
    parser.add_argument("--messages", type=int, default=2_000_000)
    parser.add_argument("--folder", type=Path, default=None, help="where to make the stores")
    chosen = parser.parse_args()
    print("| store | command | exit | anonymous MiB | s |\n|---|---|---|---|---|")
    with tempfile.TemporaryDirectory(dir=chosen.folder) as folder:
        if chosen.segments:
            sparse = Path(folder) / "sparse"
            make_sparse(sparse, chosen.segments)
            damage(sparse, range(_EACH_TENTH - 1, chosen.segments, _EACH_TENTH) or [0])
            _measure_all(sparse, f"{chosen.segments} sparse segments of 1 GiB", Path(folder))
            shutil.rmtree(sparse)
        if chosen.messages:
            small = Path(folder) / "small"
            make_small(small, chosen.messages)
            _measure_all(small, f"{chosen.messages} messages of 64 bytes", Path(folder))


def _measure_all(store: Path, title: str, folder: Path) -> None:
    for name, arguments in whole_store_commands(store, folder):
        found = measure(arguments, folder / "output")
        _print(title, name, found)


def _print(title: str, name: str, found: Measured) -> None:
    print(
        f"| {title} | {name} | {found.exit_code} | {found.anonymous_mib:.0f} | {found.elapsed_s:.1f} |",
        flush=True,
    )


if __name__ == "__main__":
    main()
