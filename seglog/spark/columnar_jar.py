"""The columnar reader: a small jar with which Spark reads messages of local stores as columns of the log.

Python plans, walks and verifies as without the jar, and the rows are the same; only the process that converts
records to columns differs. The sources are beside the jar in ``seglog/spark/columnar``;
``tools/build-columnar`` builds it.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

JAR: Final = Path(__file__).parent / "columnar" / "seglog-columnar.jar"
EXTENSIONS: Final = "seglog.spark.Extensions"
SETTING: Final = "spark.seglog.columnar"
"""Setting; ``false`` makes a session read rows as without the jar."""
_SPARK: Final = "4.3."
"""The Spark version for which its classes were compiled, and with which it was tried."""
_JARS: Final = "spark.jars"
_NAMED: Final = "spark.sql.extensions"


def columnar_settings(spark_version: str, said: Mapping[str, str]) -> dict[str, str]:
    """Returns the settings that a session needs for the jar; empty for other versions of Spark.

    Args:
        spark_version: The version of PySpark.
        said: Settings of the user, to which these are added.
    """
    if not spark_version.startswith(_SPARK) or said.get(SETTING) == "false" or not JAR.is_file():
        return {}
    return {
        name: ",".join([said[name], ours] if said.get(name) else [ours])
        for name, ours in ((_JARS, str(JAR)), (_NAMED, EXTENSIONS))
    }
