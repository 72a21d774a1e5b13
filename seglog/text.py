"""Formats numbers and text for people, for the terminal and for pages."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Final

_STEPS: Final = ("bytes", "KiB", "MiB", "GiB", "TiB", "PiB")


def count_text(count: int, noun: str = "", plural: str = "") -> str:
    """Returns ``1 message``, ``200,000 messages``."""
    if not noun:
        return f"{count:,}"
    return f"{count:,} {noun if count == 1 else plural or noun + 's'}"


def messages_text(count: int, lost: int, placeholders: int = 0, *, may_be_more: bool = False) -> str:
    """Returns ``391 messages, 9 lost``; ``400 messages`` if none is lost; adds the placeholders, if any.

    Args:
        count: Number of messages.
        lost: Number of messages that are known to be lost.
        placeholders: Number of placeholders of a compaction.
        may_be_more: Whether more messages may be lost.
    """
    text = count_text(count, "message")
    if lost:
        text += f", {'at least ' if may_be_more else ''}{count_text(lost)} lost"
    elif may_be_more:
        text += ", and it is not known how many are lost"
    return text + (f", {count_text(placeholders, 'placeholder')} of a compaction" if placeholders else "")


def size_text(size_bytes: float) -> str:
    """Returns ``1 byte``, ``17 bytes``, ``64.0 KiB``, ``1.0 GiB``."""
    if size_bytes == 1:
        return "1 byte"
    step = 0
    while size_bytes >= 1024 and step < len(_STEPS) - 1:
        size_bytes /= 1024
        step += 1
    return f"{size_bytes:.0f} {_STEPS[step]}" if step == 0 else f"{size_bytes:.1f} {_STEPS[step]}"


def printable(text: str) -> str:
    """Returns text in which characters that control a terminal, or that are invisible, are escaped.

    These are all characters that Unicode calls control, format (which change the direction of writing),
    surrogate, private, unassigned or a separator other than the space; so a line of text cannot become two.
    """
    if text.isprintable():
        return text
    return "".join(
        char if char.isprintable() else char.encode("unicode_escape", "surrogatepass").decode()
        for char in text
    )


def shell_text(words: str | os.PathLike[str]) -> str:
    """Returns a word quoted for a shell; as ``$'...'`` of bash, zsh and ksh if a terminal would act on it.

    Args:
        words: The word; a path that begins with ``-`` becomes one that no command takes for an option.
    """
    word = os.fspath(words)
    if isinstance(words, os.PathLike) and word.startswith("-"):
        word = f"./{word}"
    if word.isprintable():
        return shlex.quote(word)
    return "$'" + "".join(_escaped(char) for char in word) + "'"


def _escaped(char: str) -> str:
    if char in "\\'":
        return "\\" + char
    return char if char.isprintable() else "".join(f"\\x{byte:02x}" for byte in os.fsencode(char))


def shell_line(words: Iterable[str | os.PathLike[str]]) -> str:
    """Returns a command to type."""
    return " ".join(map(shell_text, words))


def text_of(value: object) -> str:
    """Returns ``str()`` of an application's object, such as an error; its class name if that raises."""
    try:
        return str(value)
    except Exception:  # noqa: BLE001 - the application's code
        return f"<{type(value).__name__} whose str() fails>"


def moment(timestamp_ms: int) -> str:
    """Returns a time in UTC to the second; the bare number if it is outside of the calendar."""
    try:
        return datetime.fromtimestamp(timestamp_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    except (ValueError, OverflowError, OSError):
        return str(timestamp_ms)


def java_time_text(timestamp_ms: int) -> str:
    """Returns ``2026-11-27#23:07:47:123``, RocketMQ's form of local time; the number if it is no date."""
    try:
        local = datetime.fromtimestamp(timestamp_ms // 1000, UTC).astimezone()
    except (ValueError, OverflowError, OSError):
        return str(timestamp_ms)
    return local.strftime("%Y-%m-%d#%H:%M:%S:") + f"{timestamp_ms % 1000:03d}"


def time_text(timestamp_ms: int) -> str:
    """Returns ``2026-11-27 23:07:47.123Z``, in local time; the bare number outside of the calendar."""
    try:
        local = datetime.fromtimestamp(timestamp_ms / 1000, UTC).astimezone()
    except (ValueError, OverflowError, OSError):
        return str(timestamp_ms)
    zone = local.strftime("%z")
    zone = "Z" if zone == "+0000" else f"{zone[:3]}:{zone[3:]}"
    return local.strftime("%Y-%m-%d %H:%M:%S.") + f"{timestamp_ms % 1000:03d}{zone}"
