"""``seglog version``: versions, and the optional parts that are installed.

No optional part is imported or started for this: the metadata of packages and the JDK's ``release`` file are
read. Of the engine only the kernels are loaded, to say which are in use.
"""

from __future__ import annotations

import json
import os
import platform
import re
import shutil
from importlib import metadata
from pathlib import Path

import click

from seglog.cli.ui import options, render
from seglog.cli.ui.json_kinds import JSON_VERSION, json_table
from seglog.storage.kernels import KERNELS

_ABSENT = "not installed"


@click.command
@click.option(
    "--json-schema", "wants_schema", is_flag=True, help="Print the JSON Schema of all that --json prints."
)
@options.as_json
def command(*, wants_schema: bool, as_json: bool) -> None:
    """Show versions, the kernels in use, and which optional parts are present."""
    if wants_schema:
        render.emit_text(json.dumps(json_table().schema(), indent=2))
        return
    facts = {
        "version": _version(),
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "platform": platform.platform(),
        "kernels": KERNELS,
        "numpy": package_version("numpy"),
        "crc32c": package_version("crc32c"),
        "pyspark": package_version("pyspark"),
        "java": java_text(),
    }
    if as_json:
        render.emit({"kind": "version", "jsonVersion": JSON_VERSION, **facts})
        return
    for name, value in facts.items():
        render.say(_line(name, value))


def version_line() -> str:
    """Returns the first line that the command prints."""
    return _line("version", _version())


def _version() -> str | None:
    return package_version("seglog")


def _line(name: str, value: str | None) -> str:
    return f"{name:<9} {value or _ABSENT}"


def package_version(name: str) -> str | None:
    """Returns the version of an installed package, None if it is not installed."""
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def java_text() -> str | None:
    """Returns version and path of the Java that Spark would start; the path alone if it states no version.

    None if there is no Java.
    """
    home = os.environ.get("JAVA_HOME")
    found = (shutil.which("java", path=f"{home}/bin") if home else None) or shutil.which("java")
    if found is None:
        return None
    try:
        release = (Path(found).resolve().parent.parent / "release").read_text()
    except OSError:
        return found
    version = re.search(r'^JAVA_VERSION="([^"]+)"', release, re.MULTILINE)
    return f"{version[1]} ({found})" if version else found
