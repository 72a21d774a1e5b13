"""The commands of ``seglog spark`` as a program of their own: what ``spark-submit`` is given.

    spark-submit --master spark://host:7077 --py-files seglog.zip seglog/cli/spark/__main__.py audit STORE
    python -m seglog.cli.spark audit STORE

Both are ``seglog spark audit STORE``: the same options, output and exit codes. Under ``spark-submit``
master and settings are what it was given.
"""

from __future__ import annotations

import sys
from pathlib import Path

_HERE = Path(__file__).resolve().parent
# Run as a file, Python looks for modules beside it: ours have names such as `sql`, and seglog itself is
# further up, also where it is not installed.
if sys.path and Path(sys.path[0] or ".").resolve() == _HERE:
    sys.path[0] = str(_HERE.parents[2])

from seglog.cli.main import main  # noqa: E402 - the path had to be put right first

if __name__ == "__main__":
    main(["spark", *sys.argv[1:]])
