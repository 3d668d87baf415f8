"""Sentences that were stored in English, as the ledger keeps them, told in another language.

What is stored is the English sentence with its values in it. It is found again by the catalogue's own templates, the one with the most words
of its own first; what no template has is told as it stands, such as the machine's own words."""

from __future__ import annotations

import re
import string
from functools import cache, lru_cache
from typing import NamedTuple

from common.language import Language, Text, catalogue, translated

LEAST_LETTERS = 8
"""Of a template's own words: `{name}: {found}` would match everything."""
LONGEST = 2000
"""Characters of a sentence that is looked at."""
MOST_NESTED = 4


class _Template(NamedTuple):
    pattern: re.Pattern[str]
    message: str


class _AsItStands(str):
    """A value that was taken out of a sentence: written with `!r` there, it has its quotes already."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


class Stored(Text):
    """A stored sentence as a text that can be told."""

    __slots__ = ()

    def told(self, language: Language) -> str:
        return retold(str(self), language)


def stored(sentence: str) -> Text:
    """The sentence as it is, where it still is a text."""
    return sentence if isinstance(sentence, Text) else Stored(sentence)


@lru_cache(maxsize=2048)
def retold(sentence: str, language: Language, nested: int = 0) -> str:
    """`sentence` in that language, as far as it is one of ours."""
    if language == "en" or not sentence or nested > MOST_NESTED or len(sentence) > LONGEST:
        return sentence
    told = catalogue(language).gettext(sentence)
    if told != sentence:
        return told
    for template in _templates(language):
        if found := template.pattern.fullmatch(sentence):
            values = {
                name: _AsItStands(retold(value, language, nested + 1)) for name, value in found.groupdict().items()
            }
            return catalogue(language).gettext(template.message).format(**values)
    before, colon, rest = sentence.partition(": ")
    # A field or a name in front of a sentence of ours.
    if colon and (told := retold(rest, language, nested + 1)) != rest:
        name = catalogue(language).gettext(before)
        return (
            f"{name}{colon}{told}"
            if name == before
            else translated("{name}: {found}", language).format(name=name, found=told)
        )
    return sentence


@cache
def _templates(language: Language) -> tuple[_Template, ...]:
    messages = getattr(catalogue(language), "_catalog", {})
    found = [(_letters(message), message) for message in messages if isinstance(message, str) and "{" in message]
    return tuple(
        _Template(_pattern(message), message)
        for letters, message in sorted(found, reverse=True)
        if letters >= LEAST_LETTERS
    )


def _letters(message: str) -> int:
    return sum(char.isalpha() for text, *_ in string.Formatter().parse(message) for char in text)


def _pattern(message: str) -> re.Pattern[str]:
    seen: set[str] = set()
    parts = []
    for text, name, _, _ in string.Formatter().parse(message):
        parts.append(re.escape(text))
        if name:
            parts.append(f"(?P={name})" if name in seen else f"(?P<{name}>.+?)")
            seen.add(name)
    return re.compile("".join(parts), re.DOTALL)
