"""``seglog seal``: seals the full segments of a log that have no seal or a stale one.

The log is verified at the same time; the output is that of ``seglog verify --seal``.
"""

from __future__ import annotations

from pathlib import Path

import click

from seglog.cli.doctor.verify import show_verified
from seglog.cli.ui import options


@click.command
@options.store
@options.as_json
def command(*, path: Path, as_json: bool) -> None:
    """Seal the full segments of STORE that have no seal, or a stale one.

    A seal has the checksums of a segment's blocks: it covers what records without __CRC32# leave open, and
    the next check of the log goes at the speed of the disk. The log is verified on the way, and the exit
    code is that of `seglog verify`. A segment that is damaged is never sealed.
    """
    show_verified(path, seal=True, as_json=as_json)
