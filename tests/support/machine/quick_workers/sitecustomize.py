"""Has the Pythons that Spark starts import PySpark from where it is installed, which keeps it compiled.

Spark puts a zip of the same modules before it: each daemon and each worker would compile them anew. A Python
imports this at its start where the folder is on its path.
"""

from __future__ import annotations

import os
import sys

_ZIPS = ("pyspark.zip", "-src.zip")
"""PySpark's and Py4J's in ``python/lib`` of Spark."""

if any(os.path.isdir(os.path.join(folder, "pyspark")) for folder in sys.path):  # noqa: PTH112, PTH118 - quick
    sys.path[:] = [entry for entry in sys.path if not entry.endswith(_ZIPS)]
