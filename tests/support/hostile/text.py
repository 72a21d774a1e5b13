"""Text that would act upon a terminal, and what finds it in what a command prints."""

from __future__ import annotations

import re
from typing import Final

HOSTILE: Final = "\x1b]0;x\x07\x9b31m\x7f\u202e\u2066\nFORGED\r\b"
"""A title, a colour in C1, DEL, text from right to left, a line of its own, one written over."""
ACTS: Final = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
