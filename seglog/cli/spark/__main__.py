"""The commands of ``seglog spark`` as a program for ``spark-submit``.

    spark-submit --master spark://host:7077 --py-files seglog.zip seglog/cli/spark/__main__.py audit STORE
    python -m seglog.cli.spark audit STORE

Both are equal to ``seglog spark audit STORE``: the same options, output and exit codes. ``spark-submit`` sets
master and settings.
"""

from __future__ import annotations

import sys
from pathlib import Path

_HERE = Path(__file__).resolve().parent
# For a program that is run as a file, Python searches modules in its folder, where names such as `sql` are
# ours. seglog itself is further up, also if it is not installed.
if sys.path and Path(sys.path[0] or ".").resolve() == _HERE:
    sys.path[0] = str(_HERE.parents[2])

from seglog.cli.main import main  # noqa: E402 - the path had to be put right first

if __name__ == "__main__":
    main(["spark", *sys.argv[1:]])
