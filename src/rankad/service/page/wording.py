"""Errors of the command in words for people who see no command."""

from __future__ import annotations

import re

from rankad._base.wording import isolated


def without_options(text: str) -> str:
    """Leave out of an error which option of the command would help.

    >>> without_options("column 'l' is a list; leave it out with --drop l (drop=['l']).")
    "column 'l' is a list; leave it out."
    >>> without_options("byte 0xfc is not UTF-8 text; give --encoding latin-1 if it stands for 'ü'.")
    'byte 0xfc is not UTF-8 text.'
    >>> without_options("a NUL byte. Give the format (--format), or the encoding (--encoding utf-16-le).")
    'a NUL byte.'
    """
    text = re.sub(r" with --[a-z-]+ \S+( \([a-z_]+=[^)]*\))?", "", text)
    # A part of a sentence, or a whole one, that speaks of an option.
    return isolated(re.sub(r"([;.]) [^;.]*--[a-z].*?(\.(?=\s|$)|$)", ".", text))
