"""Runs :mod:`perf.sampling.child`, and watches its memory if memory is measured."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Final

from perf.figures.sample import Sample, SanityError
from perf.sampling.child import Request

ROOT: Final = Path(__file__).resolve().parents[2]
_LIMIT_S: Final = 600
_LOOK_EVERY_S: Final = 0.005
_ANONYMOUS: Final = re.compile(rb"RssAnon:\s+(\d+) kB")


def take(request: Request, environment: Mapping[str, str] | None = None) -> Sample:
    """Runs a child to its end and returns its sample."""
    return Sample(**json.loads(run(request, 0, environment)[0]))


def run(
    request: Request,
    expected_code: int,
    environment: Mapping[str, str] | None = None,
    *,
    is_watched: bool = False,
) -> tuple[str, int]:
    """Runs a child.

    Args:
        request: What it is to do.
        expected_code: How it has to end.
        environment: Variables that it has besides ours.
        is_watched: Whether to look at its memory, which takes some of a core meanwhile.

    Returns:
        What it printed, and the bytes of anonymous memory that it had at most, 0 if that was not watched.

    Raises:
        SanityError: It ended in another way.
    """
    with tempfile.TemporaryFile() as said, tempfile.TemporaryFile() as errors:
        child = subprocess.Popen(
            [sys.executable, "-m", "perf.sampling.child", json.dumps(asdict(request))],
            cwd=ROOT,
            stdout=said,
            stderr=errors,
            env=os.environ | (environment or {}),
        )
        highest = _watch(child) if is_watched else 0
        try:
            child.wait(_LIMIT_S)
        except subprocess.TimeoutExpired as error:
            raise SanityError(f"{request.case} took more than {_LIMIT_S} s") from error
        finally:
            child.kill()
            child.wait()
        said.seek(0)
        errors.seek(0)
        if child.returncode != expected_code:
            raise SanityError(
                f"{request.case} of {request.contestant} ended with {child.returncode}:\n"
                + errors.read().decode(errors="replace")
            )
        return said.read().decode(), highest


def _watch(child: subprocess.Popen[bytes]) -> int:
    """Waits for the end, and returns the most anonymous memory that was seen until then."""
    highest = 0
    end = time.monotonic() + _LIMIT_S
    while child.poll() is None and time.monotonic() < end:
        highest = max(highest, anonymous_bytes(child.pid))
        time.sleep(_LOOK_EVERY_S)
    return highest


def anonymous_bytes(pid: int) -> int:
    """Returns the anonymous memory of a process, 0 once it has none."""
    try:
        found = _ANONYMOUS.search(Path(f"/proc/{pid}/status").read_bytes())
    except (FileNotFoundError, ProcessLookupError):
        return 0
    return int(found[1]) << 10 if found else 0
