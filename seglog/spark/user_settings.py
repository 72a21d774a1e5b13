"""Settings of the user for Spark and Java, combined with those of seglog; the user's override them.

Spark reads ``spark-defaults.conf``, but settings that a session gets by name override it. So settings of
seglog that are in the file are left out. Options of Java are placed before all others, in
``SPARK_SUBMIT_OPTS``: if two options of Java contradict each other, the later one counts.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

SUBMIT_OPTIONS: Final = "SPARK_SUBMIT_OPTS"
"""Variable with options of Java that Spark places before those of its settings."""
JAVA_OPTIONS_OF_USER: Final = (
    SUBMIT_OPTIONS,
    "PYSPARK_SUBMIT_ARGS",
    "JDK_JAVA_OPTIONS",
    "JAVA_TOOL_OPTIONS",
)
"""Environment variables that may contain options of Java."""
JAVA_SETTINGS: Final = ("spark.driver.defaultJavaOptions", "spark.driver.extraJavaOptions")
_COLLECTOR: Final = re.compile(r"-XX:\+Use\w+GC\b")
_SERIAL: Final = "-XX:+UseSerialGC"
_BRIEF: Final = "-XX:TieredStopAtLevel=1"
_LINE: Final = re.compile(r"\s*([^\s=:#!]+)\s*[\s=:]\s*(.*?)\s*")
_DEFAULTS: Final = "spark-defaults.conf"


def default_settings(environment: Mapping[str, str], spark_home: Path) -> dict[str, str]:
    """Returns the settings of ``spark-defaults.conf``, empty without one.

    Args:
        environment: The environment of the process.
        spark_home: Spark's folder, if ``SPARK_HOME`` is not set.
    """
    home = environment.get("SPARK_HOME") or spark_home
    folder = Path(environment.get("SPARK_CONF_DIR") or Path(home, "conf"))
    try:
        lines = (folder / _DEFAULTS).read_text(encoding="utf-8").splitlines()
    except (FileNotFoundError, NotADirectoryError):
        return {}
    found = (_LINE.fullmatch(line) for line in lines)
    return {one.group(1): one.group(2) for one in found if one is not None}


def java_options(said: Iterable[str], *, is_brief: bool) -> list[str]:
    """Returns seglog's options of Java.

    Args:
        said: Options of the user: two collectors are an error, so seglog's is left out if one is named.
        is_brief: Whether the job ends before Java's better compiler would pay off: a start with the faster
            one alone takes half the CPU time.
    """
    collector = [] if any(_COLLECTOR.search(text) for text in said) else [_SERIAL]
    return [*([_BRIEF] if is_brief else []), *collector]
