"""Importing this module registers ``spark.read.format("seglog")`` in the active session.

    import seglog.spark.datasource

Sessions of :func:`seglog.spark.session.local_session` have the format already; for other sessions there is
also :func:`seglog.spark.register`.
"""

from __future__ import annotations

from seglog.errors import MissingDependencyError
from seglog.spark import register

try:
    from pyspark.sql import SparkSession
except ImportError as error:
    raise MissingDependencyError(
        "the data source needs PySpark, which is not installed", help="pip install 'seglog[spark]'"
    ) from error

active = SparkSession.getActiveSession()
if active is not None:
    register(active)
