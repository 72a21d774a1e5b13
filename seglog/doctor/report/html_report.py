"""A check as one self-contained HTML page: no network, no script, light or dark by the reader's setting.

It is written without a template library, so the base install stays small: the page has a dozen parts, and
every text goes through one function that escapes it. The page forbids scripts and loads by its policy, so
that no data from a store is executed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final

from seglog.doctor.check.check_report import CheckReport
from seglog.doctor.check.triage import verdict_on
from seglog.doctor.check.verdict_text import verdict_facts
from seglog.doctor.report.html_drawings import segment_map, timeline
from seglog.doctor.report.html_text import bar, facts, section, table, text
from seglog.storage.findings import Finding, Severity, bytes_text, counts_text, place_text
from seglog.text import messages_text, shell_text, size_text, time_text

_MAX_ROWS: Final = 40
_MAX_PLACES: Final = 20
_STYLE: Final = """
:root{color-scheme:light dark;--ink:#1a1c1e;--soft:#5a6068;--paper:#fff;--panel:#f4f5f7;--line:#d5d9de;
--used:#3b7dd8;--free:#e3e7ec;--lost:#c62828;--loss:#b71c1c;--warning:#8a5a00;--note:#2a5d9f;--good:#1b6e34}
@media (prefers-color-scheme:dark){:root{--ink:#e6e8ea;--soft:#a3abb5;--paper:#14171a;--panel:#1e2226;
--line:#363c43;--used:#5b9bf0;--free:#2b3036;--lost:#ff6b60;--loss:#ff8a80;--warning:#ffc35c;--note:#8ab8f5;
--good:#7fd69a}}
*{box-sizing:border-box}
body{margin:0 auto;max-width:1080px;padding:24px 20px 60px;background:var(--paper);color:var(--ink);
font:16px/1.5 system-ui,sans-serif}
h1{font-size:1.35rem;margin:0 0 4px;overflow-wrap:anywhere}
h2{font-size:1.1rem;margin:36px 0 8px;border-bottom:1px solid var(--line);padding-bottom:4px}
h3{font-size:1rem;margin:0 0 4px}
.verdict{font-size:1.3rem;font-weight:700;padding:14px 18px;border-radius:8px;background:var(--panel);
border-left:8px solid var(--good);margin:16px 0}
.verdict.warning{border-color:var(--warning)}.verdict.loss{border-color:var(--lost)}
.verdict p{font-size:1rem;font-weight:400;margin:6px 0 0}
code,pre{font-family:ui-monospace,monospace;font-size:.92em}
code.do{display:block;background:var(--paper);border:1px solid var(--line);border-radius:6px;padding:8px 12px;
margin:6px 0;overflow-x:auto;white-space:pre}
dl{display:grid;grid-template-columns:max-content 1fr;gap:2px 18px;margin:0}
dt{color:var(--soft)}dd{margin:0;overflow-wrap:anywhere}
.wide{overflow-x:auto}table{border-collapse:collapse;width:100%}
th,td{text-align:left;padding:4px 10px 4px 0;border-bottom:1px solid var(--line);vertical-align:top}
th{color:var(--soft);font-weight:600}td.n,th.n{text-align:right;font-variant-numeric:tabular-nums}
.bar{display:block;height:12px;background:var(--free);border-radius:3px;min-width:120px;margin-top:6px}
.bar span{display:block;height:100%;background:var(--used);border-radius:3px}
.finding{background:var(--panel);border-left:6px solid var(--note);border-radius:6px;padding:12px 16px;
margin:12px 0}
.finding.warning{border-color:var(--warning)}.finding.loss{border-color:var(--lost)}
.finding ul{margin:6px 0;padding-left:20px;overflow-wrap:anywhere}
.tag{font-weight:700;text-transform:uppercase;font-size:.85em;color:var(--note)}
.warning .tag{color:var(--warning)}.loss .tag{color:var(--loss)}
svg{width:100%;height:auto;display:block}svg text{font:13px ui-monospace,monospace;fill:var(--soft)}
svg line{stroke:var(--line)}
rect.used{fill:var(--used)}rect.free{fill:var(--free)}rect.lost{fill:var(--lost)}rect.gone{fill:url(#gone)}
.key{display:inline-block;width:14px;height:12px;border-radius:2px;margin:0 4px 0 12px}
.key.used{background:var(--used)}.key.lost{background:var(--lost)}.key.free{background:var(--free)}
.note,.legend,footer{color:var(--soft);margin:4px 0 10px}
footer{margin-top:48px;font-size:.9rem}
"""


def render_report(report: CheckReport, made_ms: int) -> str:
    """Returns the page.

    Args:
        report: The check.
        made_ms: The time now.
    """
    store = str(report.root)
    body = [
        f"<h1>{text(store)}</h1>",
        f'<p class="note">seglog report of {text(time_text(made_ms))}</p>',
        _verdict(report),
        section("The store", facts(_facts(report))),
        section(
            "Map of the commit log",
            segment_map(report),
            "One row for each file, from its first byte to its last; point at a mark to read what it is.",
        ),
        section("Findings", _findings(report)),
        section("Writes over time", timeline(report.minutes), "Bytes by store time of their records."),
        section("Size by topic", _topics(report)),
        section("Lag by group", _lags(report)),
        section(
            "Not looked at, or not to be seen",
            "<ul>" + "".join(f"<li>{text(line)}</li>" for line in report.not_looked_at) + "</ul>",
        ),
        "<footer>Made by reading only: nothing in the store was changed.</footer>",
    ]
    policy = "default-src 'none'; style-src 'unsafe-inline'"
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<title>{text(report.root.name)} - seglog report</title><style>{_STYLE}</style></head><body>"
        + "\n".join(body)
        + "</body></html>\n"
    )


def _verdict(report: CheckReport) -> str:
    worst = max((finding.severity for finding in report.findings), key=list(Severity).index, default=None)
    kind = worst.value if worst is not None else "note"
    named = verdict_facts(report, report.root)
    todo = f'<p>Next:</p><code class="do">{text(named.pop("next"))}</code>' if "next" in named else ""
    if "BYTES" in named:
        todo += f"<p>BYTES: {text(named.pop('BYTES'))}</p>"
    lines = "".join(f"<p><b>{text(name)}</b> {text(value)}</p>" for name, value in named.items())
    return f'<div class="verdict {kind}">{lines}<p>{text(counts_text(report.findings))}</p>{todo}</div>'


def _typed(finding: Finding, report: CheckReport) -> str:
    return finding.command_for(shell_text(report.root), report.findings)


def _facts(report: CheckReport) -> list[tuple[str, str]]:
    states = {
        "clean": "closed cleanly",
        "crashed": "not closed: its last writer crashed or was killed",
        "open": "open for writing by a process",
    }
    counts = report.messages
    messages = messages_text(
        counts.messages, counts.lost, counts.placeholders, may_be_more=verdict_on(report).may_be_more
    )
    topics = len({queue.topic for queue in report.queues})
    start = max(0, report.min_phy_offset)
    if not report.records:
        crc = ""
    elif report.with_record_crc == report.records:
        crc = ", all with record CRC"
    else:
        crc = f", {report.with_record_crc:,} with record CRC"
    rows = [
        ("state", text(states[report.state])),
        (
            "log",
            (
                f"{start:,}..{report.end_phy_offset:,}, {size_text(report.end_phy_offset - start)} in"
                f" {len(report.log_files)} files of {size_text(report.geometry.segment_size_bytes)}"
            ),
        ),
        ("records", f"{report.records:,}{crc}"),
        (
            "queues",
            f"{len(report.queues):,} of {topics:,} topics, {messages}",
        ),
    ]
    if report.minutes:
        first, last = report.minutes[0][0] * 60_000, report.minutes[-1][0] * 60_000
        rows.append(("written", f"{text(time_text(first))} to {text(time_text(last))}"))
    return rows


def _findings(report: CheckReport) -> str:
    if not report.findings:
        return "<p>Nothing was found.</p>"
    by_code: dict[str, list[Finding]] = {}
    worst_first = sorted(report.findings, key=lambda finding: -list(Severity).index(finding.severity))
    for finding in worst_first:
        by_code.setdefault(finding.code, []).append(finding)
    return "".join(_finding(same, report) for same in by_code.values())


def _finding(same: Sequence[Finding], report: CheckReport) -> str:
    first = same[0]
    places = "".join(f"<li><code>{text(place_text(finding))}</code></li>" for finding in same[:_MAX_PLACES])
    if len(same) > _MAX_PLACES:
        places += f"<li>and {len(same) - _MAX_PLACES:,} more; seglog check --json lists all</li>"
    todo = ""
    if first.severity is not Severity.NOTE:
        todo = "".join(
            f"<div><b>RocketMQ logs:</b> <code>{text(line)}</code></div>" for line in first.rocketmq_logs
        )
        todo += f"<div><b>For messages:</b> {text(first.for_messages)}.</div>"
        todo += f"<div><b>To do:</b> {text(first.fix_among(report.findings))}.</div>"
        if typed := _typed(first, report):
            todo += f'<code class="do">{text(typed)}</code>'
            if replaced := bytes_text(typed):
                todo += f"<div>BYTES: {text(replaced)}</div>"
    return (
        f'<div class="finding {first.severity.value}"><h3><span class="tag">{first.severity.value}</span>'
        f" {text(first.meaning)}</h3><ul>{places}</ul>{todo}</div>"
    )


def _topics(report: CheckReport) -> str:
    sizes: Counter[str] = Counter()
    counts: Counter[str] = Counter()
    queues: Counter[str] = Counter()
    for queue in report.queues:
        sizes[queue.topic] += queue.bytes
        counts[queue.topic] += queue.max_offset - queue.min_offset
        queues[queue.topic] += 1
    if not sizes:
        return "<p>There are no queues.</p>"
    most = max(1, *sizes.values())
    shown = sizes.most_common(_MAX_ROWS)
    rows = [
        (text(topic), f"{queues[topic]:,}", f"{counts[topic]:,}", size_text(held), bar(held / most))
        for topic, held in shown
    ]
    rest = len(sizes) - len(shown)
    left = f'<p class="note">and {rest:,} smaller topics</p>' if rest else ""
    columns = ("topic", "queues", "messages", "size", "")
    return table(columns, rows, numbers=("queues", "messages", "size")) + left


def _lags(report: CheckReport) -> str:
    lags: Counter[tuple[str, str]] = Counter()
    missed: Counter[tuple[str, str]] = Counter()
    for at in report.lags:
        lags[at.group, at.topic] += at.lag
        missed[at.group, at.topic] += at.missed
    if not lags:
        return "<p>No group has an offset in a queue of this store.</p>"
    most = max(1, *lags.values())
    shown = lags.most_common(_MAX_ROWS)
    rows = [
        (text(group), text(topic), f"{lag:,}", f"{missed[group, topic]:,}", bar(lag / most))
        for (group, topic), lag in shown
    ]
    rest = len(lags) - len(shown)
    left = f'<p class="note">and {rest:,} more with less lag</p>' if rest else ""
    columns = ("group", "topic", "behind", "missed", "")
    return table(columns, rows, numbers=("behind", "missed")) + left
