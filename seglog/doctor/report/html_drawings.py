"""Drawings of a report, as SVG: the map of the segments with its holes, and the timeline of writes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Final

from seglog.doctor.check.check_report import CheckReport
from seglog.doctor.check.record_observer import MINUTE_MS
from seglog.doctor.report.html_text import text
from seglog.storage.format.names import segment_file_name
from seglog.text import size_text, time_text

_WIDTH: Final = 1000
_ROW: Final = 22
_BAR: Final = 14
_LABEL: Final = 190
_MAX_ROWS: Final = 256
_LEAST: Final = 3
"""Least width of a hole, in pixels."""
_BUCKETS: Final = 120
_HEIGHT: Final = 140
_STEPS_MIN: Final = (1, 5, 10, 30, 60, 180, 360, 720, 1440, 10_080, 43_200, 525_600)


def segment_map(report: CheckReport) -> str:
    """Returns a row for each segment: the parts that are written, unreadable, missing or empty."""
    length = report.geometry.segment_size_bytes
    sizes = {file.first_offset: file.size_bytes for file in report.log_files}
    if not sizes:
        return "<p>There is no commit-log file.</p>"
    every = range(min(sizes), max(sizes) + 1, length)  # not a list: a file name may state any offset
    firsts = _worth_showing(report, every, sizes) if len(every) > _MAX_ROWS else list(every)
    left_out = len(every) - len(firsts)
    rows = [_segment_row(report, first, sizes.get(first), number) for number, first in enumerate(firsts)]
    height = _ROW * len(firsts) + 4
    drawing = (
        f'<svg viewBox="0 0 {_WIDTH} {height}" role="img" aria-label="map of the segments">'
        '<defs><pattern id="gone" width="6" height="6" patternUnits="userSpaceOnUse"'
        ' patternTransform="rotate(45)"><rect width="3" height="6" class="lost"/></pattern></defs>'
        + "".join(rows)
        + "</svg>"
    )
    legend = (
        '<p class="legend"><span class="key used"></span> records'
        ' <span class="key lost"></span> cannot be read or is missing <span class="key free"></span> empty'
        + (f" · {left_out} segments without damage are not shown" if left_out else "")
        + "</p>"
    )
    return drawing + legend


def _worth_showing(report: CheckReport, firsts: range, sizes: Mapping[int, int]) -> list[int]:
    """Returns the segments to draw: first those with holes, then those with a file, the newest first."""
    start, step = firsts.start, firsts.step
    hurt = (
        first
        for hole in report.holes
        for first in firsts[max(0, (hole.phy_offset - start) // step) : max(0, -((start - hole.end) // step))]
    )
    chosen: set[int] = set()
    with_files = (first for first in sorted(sizes, reverse=True) if first in firsts)
    for first in chain(hurt, with_files, reversed(firsts)):
        chosen.add(first)
        if len(chosen) == _MAX_ROWS:
            break
    return sorted(chosen)


def _segment_row(report: CheckReport, first: int, file_bytes: int | None, number: int) -> str:
    length = report.geometry.segment_size_bytes
    top = _ROW * number
    scale = (_WIDTH - _LABEL) / length

    def rect(start: int, end: int, kind: str, title: str) -> str:
        left = _LABEL + (start - first) * scale
        width = max(_LEAST, (end - start) * scale)
        left = min(left, _WIDTH - width)
        return (
            f'<rect x="{left:.1f}" y="{top + 3}" width="{width:.1f}" height="{_BAR}" class="{kind}">'
            f"<title>{text(title)}</title></rect>"
        )

    name = segment_file_name(first)
    parts = [f'<text x="0" y="{top + 14}">{name}</text>', rect(first, first + length, "free", name)]
    if file_bytes is None:
        parts.append(rect(first, first + length, "gone", f"{name} is missing"))
        return "".join(parts)
    used = min(report.end_phy_offset, first + length)
    if used > first:
        parts.append(rect(first, used, "used", f"{name}: {size_text(used - first)} written"))
    for hole in report.holes:
        start, end = max(first, hole.phy_offset), min(first + length, hole.end)
        if start < end:
            what = f"+{start - first}, {size_text(end - start)} cannot be read: {hole.why}"
            parts.append(rect(start, end, "lost", what))
    for finding in report.findings:
        if finding.code == "log-tail-lost" and finding.file.endswith(name):
            start = first + finding.position_bytes
            end = min(first + length, start + finding.size_bytes)
            parts.append(rect(start, end, "lost", f"the end of the log, {size_text(end - start)}, is gone"))
    return "".join(parts)


def timeline(minutes: Sequence[tuple[int, int, int]]) -> str:
    """Returns a drawing of the bytes written over time.

    Args:
        minutes: Minute since 1970, records and bytes, in order.
    """
    if not minutes:
        return "<p>There are no records.</p>"
    first, last = minutes[0][0], minutes[-1][0]
    step = next(
        (step for step in _STEPS_MIN if (last - first) // step < _BUCKETS), (last - first) // _BUCKETS
    )
    base = first - first % step
    count = (last - base) // step + 1
    records, sizes = [0] * count, [0] * count
    for minute, more_records, more_bytes in minutes:
        at = (minute - base) // step
        records[at] += more_records
        sizes[at] += more_bytes
    peak = max(sizes)
    width = _WIDTH / max(count, 24)
    bars = []
    for at, (held, size_bytes) in enumerate(zip(records, sizes, strict=True)):
        if not held:
            continue
        height = max(2.0, size_bytes / peak * (_HEIGHT - 20))
        title = f"{time_text((base + at * step) * MINUTE_MS)}: {held:,} records, {size_text(size_bytes)}"
        bars.append(
            f'<rect x="{at * width:.1f}" y="{_HEIGHT - height:.1f}" width="{max(1.0, width - 1):.1f}"'
            f' height="{height:.1f}" class="used"><title>{text(title)}</title></rect>'
        )
    return (
        f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT + 22}" role="img" aria-label="timeline of writes">'
        f'<text x="0" y="12">peak {text(size_text(peak))} in {_step_text(step)}</text>'
        f'<line x1="0" y1="{_HEIGHT}" x2="{_WIDTH}" y2="{_HEIGHT}"/>'
        + "".join(bars)
        + f'<text x="0" y="{_HEIGHT + 18}">{text(time_text(first * MINUTE_MS))}</text>'
        f'<text x="{_WIDTH}" y="{_HEIGHT + 18}" text-anchor="end">'
        f"{text(time_text(last * MINUTE_MS))}</text></svg>"
    )


def _step_text(minutes: int) -> str:
    if minutes < 60:
        return f"{minutes} min"
    return f"{minutes // 60} h" if minutes < 1440 else f"{minutes // 1440} d"
