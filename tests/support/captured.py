"""Frames of real connections: official Java clients and mqadmin 5.4.0 with name server and broker 5.4.0.

Each line of ``frames.jsonl`` is a request, and its answer unless it is oneway, as they went over the wire:
one of each kind that differs in code, fields or form. ``java_headers.txt`` has the fields of RocketMQ's
header classes: ``name:type``, ``!`` where it is required.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).parents[1] / "remoting" / "captured"


@dataclass(frozen=True)
class Captured:
    """A request and its answer.

    Attributes:
        label: What was done when it was captured.
        code: Of the request.
        request: Its frame.
        answer: The frame of the answer; None for a oneway request.
    """

    label: str
    code: int
    request: bytes
    answer: bytes | None


@dataclass(frozen=True)
class JavaField:
    """A field of a header class."""

    name: str
    kind: str
    is_required: bool


def captured() -> list[Captured]:
    """Returns all exchanges."""
    found = []
    for line in (FOLDER / "frames.jsonl").read_text().splitlines():
        fields = json.loads(line)
        answer = fields["answer"]
        found.append(
            Captured(
                fields["label"],
                fields["code"],
                bytes.fromhex(fields["request"]),
                None if answer is None else bytes.fromhex(answer),
            )
        )
    return found


def captured_frames() -> list[bytes]:
    """Returns all frames, requests and answers."""
    return [frame for one in captured() for frame in (one.request, one.answer) if frame is not None]


def java_headers() -> dict[str, dict[str, JavaField]]:
    """Returns the fields of each class by its name, and by the name of its request code where it has one."""
    found = {}
    for line in (FOLDER / "java_headers.txt").read_text().splitlines():
        head, _, fields = line.partition(" ::")
        kind, code = head.split()
        found[kind] = {}
        for field in filter(None, (one.strip() for one in fields.split(", "))):
            name, _, rest = field.partition(":")
            marked = rest.partition("=")[0].strip()
            found[kind][name] = JavaField(name, marked[:-1].rpartition(" ")[2], marked[-1] == "!")
        if code != "-" and kind.endswith(("RequestHeader", "Header", "HeaderV2")) and "Response" not in kind:
            found[code] = found[kind]
    return found
