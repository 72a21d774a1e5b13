"""What the user said of Spark and Java elsewhere, and what we say beside it: theirs counts where both do.

Spark reads ``spark-defaults.conf``, but what a session is given by name wins over it. So our settings leave
out what is in there. Our options of Java go before all others, in ``SPARK_SUBMIT_OPTS``: of two options of
Java that say the same the later one counts.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

SUBMIT_OPTIONS: Final = "SPARK_SUBMIT_OPTS"
"""Options of Java that Spark puts before those of its settings."""
JAVA_OPTIONS_OF_USER: Final = (
    SUBMIT_OPTIONS,
    "PYSPARK_SUBMIT_ARGS",
    "JDK_JAVA_OPTIONS",
    "JAVA_TOOL_OPTIONS",
)
"""Environment variables that may name options of Java."""
JAVA_SETTINGS: Final = ("spark.driver.defaultJavaOptions", "spark.driver.extraJavaOptions")
_COLLECTOR: Final = re.compile(r"-XX:\+Use\w+GC\b")
_SERIAL: Final = "-XX:+UseSerialGC"
_BRIEF: Final = "-XX:TieredStopAtLevel=1"
_LINE: Final = re.compile(r"\s*([^\s=:#!]+)\s*[\s=:]\s*(.*?)\s*")
_DEFAULTS: Final = "spark-defaults.conf"


def default_settings(environment: Mapping[str, str], spark_home: Path) -> dict[str, str]:
    """Returns the settings of ``spark-defaults.conf``, empty without one.

    Args:
        environment: That of the process.
        spark_home: Where Spark is, if ``SPARK_HOME`` does not say.
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
    """Returns our options of Java.

    Args:
        said: Options that the user gave: two collectors are an error, so ours stays out where one is named.
        is_brief: Whether the job is over before Java's better compiler would pay: starting with the quicker
            one alone takes half the CPU time.
    """
    collector = [] if any(_COLLECTOR.search(text) for text in said) else [_SERIAL]
    return [*([_BRIEF] if is_brief else []), *collector]
