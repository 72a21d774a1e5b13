"""A session of one process in another: a process that is to be killed needs no Java of its own."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from py4j.java_gateway import JavaGateway
    from pyspark.sql import SparkSession

_PORT: Final = "PYSPARK_GATEWAY_PORT"
_SECRET: Final = "PYSPARK_GATEWAY_SECRET"  # the name of a variable


def lend(session: SparkSession) -> dict[str, str]:
    """Returns the environment of a process that calls :func:`borrowed_session`."""
    gateway = session.sparkContext._gateway
    assert gateway is not None
    parameters = gateway.gateway_parameters
    said = {_PORT: str(parameters.port), _SECRET: parameters.auth_token, "PYSPARK_PYTHON": sys.executable}
    return {**os.environ, **said}


def borrowed_session() -> SparkSession:
    """Returns the session that was lent; the process that lent it stops it."""
    from pyspark import SparkConf, SparkContext
    from pyspark.java_gateway import launch_gateway
    from pyspark.sql import SparkSession

    from seglog.spark import register

    launch: Callable[[], JavaGateway] = launch_gateway
    gateway = launch()
    java = gateway.jvm
    context = java.org.apache.spark.SparkContext.getOrCreate()
    lent = java.org.apache.spark.api.java.JavaSparkContext.fromSparkContext(context)
    conf = SparkConf(_jvm=java, _jconf=context.conf())
    session = SparkSession(SparkContext(conf=conf, gateway=gateway, jsc=lent))
    register(session)
    return session
