"""Languages that clients say they are written in: a name in JSON headers, a number in binary ones.

Source: ``LanguageCode.java``.
"""

from __future__ import annotations

from typing import Final

OUR_LANGUAGE: Final = "PYTHON"
LANGUAGES: Final = (
    "JAVA",
    "CPP",
    "DOTNET",
    OUR_LANGUAGE,
    "DELPHI",
    "ERLANG",
    "RUBY",
    "OTHER",
    "HTTP",
    "GO",
    "PHP",
    "OMS",
    "RUST",
    "NODE_JS",
)
"""By number. A name or number that RocketMQ does not know becomes null there, and ``OTHER`` here."""

OTHER: Final = "OTHER"
LANGUAGE_NUMBERS: Final = {name: number for number, name in enumerate(LANGUAGES)}
