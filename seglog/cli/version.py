"""``seglog version``: what runs here, and which optional parts were found.

Nothing is imported to find out: versions come from the metadata of the installed packages.
"""

from __future__ import annotations

import platform
import shutil
from importlib import metadata

import click

from seglog.cli import options, render
from seglog.storage.kernels import KERNELS

_ABSENT = "not installed"


@click.command
@options.as_json
def command(*, as_json: bool) -> None:
    """Show versions, the kernels in use, and which optional parts are present."""
    facts = {
        "version": package_version("seglog"),
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "platform": platform.platform(),
        "kernels": KERNELS,
        "numpy": package_version("numpy"),
        "crc32c": package_version("crc32c"),
        "pyspark": package_version("pyspark"),
        "java": shutil.which("java"),
    }
    if as_json:
        render.emit(facts)
        return
    for name, value in facts.items():
        click.echo(f"{name:<9} {value or _ABSENT}")


def package_version(name: str) -> str | None:
    """Returns the version of an installed package, None if there is none."""
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None
