"""Importing this makes ``spark.read.format("seglog")`` work in the session that is active.

    import seglog.spark.datasource

Sessions of :func:`seglog.spark.session.local_session` know the format already; for others there is
:func:`seglog.spark.register`.
"""

from __future__ import annotations

from pyspark.sql import SparkSession

from seglog.spark import register

active = SparkSession.getActiveSession()
if active is not None:
    register(active)
