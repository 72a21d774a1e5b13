"""Words and commands as people and shells read them."""

from __future__ import annotations

import subprocess

from hypothesis import given
from hypothesis import strategies as st

from seglog.text import shell_line, shell_text

WORDS = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=20)


@given(st.lists(WORDS, min_size=1, max_size=4))
def test_a_shell_takes_each_word_as_it_is(words):
    shown = subprocess.run(
        ["bash", "-c", f"printf '%s\\0' {shell_line(words)}"], capture_output=True, check=True
    )
    assert shown.stdout.decode().split("\0")[:-1] == words


@given(WORDS)
def test_a_command_to_type_has_nothing_that_a_terminal_acts_upon(word):
    assert shell_text(word).isprintable()
