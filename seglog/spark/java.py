"""Finds a Java version that Spark supports, or names the package to install."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Final

MIN_JAVA: Final = 17
"""The least version that Spark 4 supports."""

_JAVA_HOME: Final = "JAVA_HOME"
_VERSION: Final = re.compile(r"^\s*java\.specification\.version = (?:1\.)?(\d+)", re.MULTILINE)
_VERSION_TIMEOUT_S: Final = 60.0
_INSTALL: Final = {
    "apt-get": "sudo apt-get install openjdk-17-jre-headless (where there is no 17: openjdk-21-jre-headless)",
    "dnf": "sudo dnf install java-21-openjdk-headless",
    "zypper": "sudo zypper install java-21-openjdk-headless",
    "apk": "sudo apk add openjdk17-jre-headless",
    "pacman": "sudo pacman -S jre21-openjdk-headless",
    "brew": "brew install openjdk@17",
}


def java_problem() -> str | None:
    """Returns why there is no Java for Spark, and what to install; None if there is one."""
    seen: list[str] = []
    for source, java in _candidates():
        major = java_major(java)
        if major is not None and major >= MIN_JAVA:
            return None
        seen.append(f"{source} is {java}, {'which does not run' if major is None else f'Java {major}'}")
    found = "; ".join(seen) or "JAVA_HOME is not set and there is no java on PATH"
    return f"Spark needs Java {MIN_JAVA} or newer: {found}"


def is_java_home_usable() -> bool:
    """Returns whether JAVA_HOME, which Spark prefers to PATH, is set and has a Java that Spark supports."""
    source, java = next(_candidates(), ("", Path()))
    return source == _JAVA_HOME and (java_major(java) or 0) >= MIN_JAVA


def java_help() -> str:
    """Returns advice on installing Java on this system."""
    for tool, command in _INSTALL.items():
        if shutil.which(tool) is not None:
            return f"install one with `{command}`, or set JAVA_HOME to where one is"
    return "install a JRE or JDK, such as Eclipse Temurin 17 from adoptium.net, and set JAVA_HOME to it"


def java_major(java: Path) -> int | None:
    """Returns the version of a java command, 8 for 1.8; None if it does not run."""
    try:
        said = subprocess.run(
            [java, "-XshowSettings:properties", "-version"],
            capture_output=True,
            text=True,
            errors="replace",
            stdin=subprocess.DEVNULL,
            timeout=_VERSION_TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    version = _VERSION.search(said.stderr + said.stdout)
    return int(version.group(1)) if version and said.returncode == 0 else None


def _candidates() -> Iterator[tuple[str, Path]]:
    home = os.environ.get(_JAVA_HOME)
    if home:
        yield _JAVA_HOME, Path(home) / "bin" / "java"
    on_path = shutil.which("java")
    if on_path is not None:
        yield "java on PATH", Path(on_path)
