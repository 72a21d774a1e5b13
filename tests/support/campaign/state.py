"""What a campaign has done so far, and the summary that is committed."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from tests.support.campaign.journal import file_of

_HEAD: Final = "campaign.json"


@dataclass(frozen=True, slots=True)
class Run:
    """What all parts of a campaign are of; a journal of another one is not continued.

    Attributes:
        commit: Hash of the sources.
        size: How much the searching tests do.
        seed: What they draw from.
    """

    commit: str
    size: str
    seed: str


@dataclass(slots=True)
class Part:
    """What a part has done.

    Attributes:
        outcomes: The last outcome of each test, and the first where that was another.
        done: Files whose selected tests have all run.
        seconds: Of the tests, added up.
        is_complete: Whether nothing is left to run.
        ends: How many runs came to their end by themselves.
    """

    outcomes: dict[str, dict[str, Any]] = field(default_factory=dict)
    first: dict[str, dict[str, Any]] = field(default_factory=dict)
    done: set[str] = field(default_factory=set)
    seconds: float = 0.0
    is_complete: bool = False
    ends: int = 0

    def failures(self) -> list[dict[str, Any]]:
        """Returns the tests whose last outcome is a failure."""
        return [line for line in self.outcomes.values() if line["outcome"] == "failed"]

    def wrong(self) -> list[dict[str, Any]]:
        """Returns the failures that make a campaign red: also of a test that was wrong, and passed since."""
        return [*self.failures(), *(line for line in self.flaky() if not line.get("is_late"))]

    def has_run_nothing(self) -> bool:
        """Returns whether it came to its end without a test that passed or failed."""
        return self.is_complete and not {"passed", "failed"} & {
            line["outcome"] for line in self.outcomes.values()
        }

    def flaky(self) -> list[dict[str, Any]]:
        """Returns the first failure of each test that has passed since, of the same sources and seed."""
        passed = {test for test, line in self.outcomes.items() if line["outcome"] == "passed"}
        return [line for test, line in self.first.items() if test in passed and line["outcome"] == "failed"]

    def files_to_skip(self) -> set[str]:
        """Returns the files that need not run again: all of their tests have run, and none has failed."""
        return self.done - {file_of(line["test"]) for line in self.failures()}

    def summary(self) -> dict[str, Any]:
        """Returns the counts for the summary."""
        counts = Counter(line["outcome"] for line in self.outcomes.values())
        return {
            "complete": self.is_complete,
            **{name: counts[name] for name in ("passed", "failed", "skipped")},
            "seconds": round(self.seconds),
        }


class State:
    """The folder of a campaign: a journal of each part, and of what they are.

    Args:
        folder: Where it is.
        run: What is to be run; a folder of another run is emptied.
    """

    def __init__(self, folder: Path, run: Run) -> None:
        self._folder = folder
        said = {"commit": run.commit, "size": run.size, "seed": run.seed}
        head = folder / _HEAD
        self.is_continued = False
        with suppress(OSError, ValueError):  # a kill may have left a part of it
            self.is_continued = json.loads(head.read_bytes()) == said
        if not self.is_continued:
            shutil.rmtree(folder, ignore_errors=True)  # campaigns of damage keep their results there too
            folder.mkdir(parents=True)
            head.write_text(json.dumps(said))

    def journal(self, part: str) -> Path:
        """Returns where the outcomes of a part are appended."""
        return self._folder / f"{part}.jsonl"

    def note(self, part: str, **line: object) -> None:
        """Appends a line to the journal of a part."""
        with self.journal(part).open("a", encoding="utf-8") as out:
            out.write(f"\n{json.dumps(line)}\n")  # the line before may be one that was not finished

    def part(self, name: str) -> Part:
        """Reads what a part has done."""
        part = Part()
        for line in self._lines(name):
            if "file" in line:
                part.done.add(line["file"])
                part.outcomes.pop(line["file"], None)  # it could not be collected before
            elif "ended" in line:
                part.ends += 1
            elif "part_seconds" in line:
                part.seconds += line["part_seconds"]
                part.is_complete = line["complete"]
            else:
                part.first.setdefault(line["test"], line)
                part.outcomes[line["test"]] = line
        return part

    def _lines(self, part: str) -> Iterator[dict[str, Any]]:
        path = self.journal(part)
        lines = path.read_bytes().splitlines() if path.is_file() else []
        for text in filter(None, lines):
            with suppress(ValueError):  # the last line of a run that was killed
                line = json.loads(text)
                if isinstance(line, dict):
                    yield line


def summary_of(run: Run, date: str, parts: dict[str, Part], before: dict[str, Any]) -> dict[str, Any]:
    """Returns what is committed of a campaign.

    Args:
        run: What it was of.
        date: When it was, as text.
        parts: What each part has done.
        before: The summary of the campaign before; a green one is remembered until the next green one.
    """
    failures = [{"part": name, **line} for name, part in parts.items() for line in part.wrong()]
    failures += [
        {"part": name, "test": name, "outcome": "failed", "error": "it ran no test"}
        for name, part in parts.items()
        if part.has_run_nothing()
    ]
    flaky = [{"part": name, **line} for name, part in parts.items() for line in part.flaky()]
    complete = all(part.is_complete for part in parts.values())
    is_green = complete and not failures and " " not in run.commit
    return {
        "commit": run.commit,
        "date": date,
        "green": {"commit": run.commit, "date": date} if is_green else before.get("green"),
        "size": run.size,
        "seed": run.seed,
        "complete": complete,
        "parts": {name: part.summary() for name, part in parts.items()},
        "failures": failures,
        "flaky": flaky,
    }
