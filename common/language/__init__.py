"""Texts for people: English in the code, translations by gettext.

The English text is its own id; `locales/fr/LC_MESSAGES/mcfd.po` has the French. `make venv` compiles it, `make check`
fails on an entry that is missing, fuzzy or no longer used (CONTRIBUTING: how a text is added)."""

from __future__ import annotations

import gettext
import os
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, Literal, Self, get_args

Language = Literal["fr", "en"]
LANGUAGES: tuple[Language, ...] = get_args(Language)

FOLDER = Path(__file__).parent / "locales"
DOMAIN = "mcfd"
_EMPTY = ""
LONGEST_WISH = 256
"""Characters of an Accept-Language header."""
MINUTE, HOUR, DAY = 60, 3600, 86_400


def ambient(environ: Mapping[str, str] = os.environ) -> Language:
    """The terminal's language: French, unless the first of `LC_ALL`, `LC_MESSAGES`, `LANG` that is set is English."""
    for name in ("LC_ALL", "LC_MESSAGES", "LANG"):
        if value := environ.get(name):
            return "en" if value.lower().startswith("en") else "fr"
    return "fr"


@cache
def catalogue(language: Language) -> gettext.NullTranslations:
    """English is the text in the code. A missing catalogue must not stop a till: then French falls back to English."""
    if language == "en":
        return gettext.NullTranslations()
    return gettext.translation(DOMAIN, FOLDER, [language], fallback=True)


def translated(message: str, language: Language) -> str:
    return catalogue(language).gettext(message) if message else ""


class Text(str):
    """A sentence for people, translated only when it is printed. As a string it is the English sentence with its
    values, for logs and storage; `in_language` returns it in any language and translates values that are texts."""

    __slots__ = ("message", "values")

    message: str
    values: dict[str, Any]

    def __new__(cls, message: str, /, **values: object) -> Self:
        text = super().__new__(cls, message.format(**values) if values else message)
        text.message = str(message)
        text.values = values
        return text

    def __call__(self, **values: object) -> Text:
        """The same sentence with these values."""
        return Text(self.message, **values)

    def in_language(self, language: Language) -> str:
        sentence = translated(self.message, language)
        if not self.values:
            return sentence
        return sentence.format(**{name: translate(value, language) for name, value in self.values.items()})


NO_TEXT = Text(_EMPTY)


class Counted(Text):
    """A number of things, with the singular or the plural text; `number` decides, and is `{count}` unless `values` has
    one. Each of the two is a text of its own in the catalogue."""

    __slots__ = ("number", "one", "several")

    number: int
    one: str
    several: str

    def __new__(cls, one: str, several: str, number: int, /, **values: object) -> Self:
        text = super().__new__(cls, one if number == 1 else several, **{"count": number, **values})
        text.number, text.one, text.several = number, one, several
        return text

    def in_language(self, language: Language) -> str:
        """For zero, French uses the singular, English the plural."""
        is_one = self.number == 1 or (self.number == 0 and language == "fr")
        return Text(self.one if is_one else self.several, **self.values).in_language(language)


def duration(seconds: int) -> Text:
    """Its length in the largest unit of which it has two, whatever its sign."""
    length = abs(seconds)
    if length < 2 * MINUTE:
        return Text("{count} s", count=length)
    if length < 2 * HOUR:
        return Text("{count} min", count=length // MINUTE)
    if length < 2 * DAY:
        return Text("{count} h", count=length // HOUR)
    return Text("{count} d", count=length // DAY)


def translate(value: object, language: Language) -> object:
    """A text, or an error's text, in that language; any other value unchanged."""
    if isinstance(value, Exception):
        value = sentence(value)
    return value.in_language(language) if isinstance(value, Text) else value


def sentence(error: Exception) -> Text:
    """An error's message: the Text it was raised with, so that it can still be translated, else its string."""
    return next((part for part in error.args if isinstance(part, Text)), None) or Text(str(error))


def chosen(choice: str, accept_language: str, configured: Language) -> Language:
    """The language of a page: the person's choice, then the browser's, then the configured one."""
    return next((language for language in LANGUAGES if language == choice), None) or preferred(
        accept_language, configured
    )


def by_weight(accepted: str) -> list[str]:
    """The values of an Accept or Accept-Language header in small letters, the highest weight first, without those of
    weight 0. Only `LONGEST_WISH` characters are read: a long header from a stranger must not cost time."""
    found = []
    for part in accepted[:LONGEST_WISH].split(","):
        name, *options = (each.strip() for each in part.lower().split(";"))
        weight = next((each.removeprefix("q=") for each in options if each.startswith("q=")), "1")
        with suppress(ValueError):
            found.append((float(weight), name))
    return [name for weight, name in sorted(found, key=lambda each: -each[0]) if weight > 0]


def preferred(accept_language: str, otherwise: Language = "en") -> Language:
    """The supported language with the highest weight in an Accept-Language header; `otherwise` (English, for programs)
    if there is none."""
    primaries = [name.partition("-")[0] for name in by_weight(accept_language)]
    return next((language for name in primaries for language in LANGUAGES if language == name), otherwise)


def tr(message: str, /, **values: object) -> str:
    """A sentence in the terminal's language."""
    return Speaker(ambient())(message, **values)


class Speaker:
    """Translates into one language. Variables of it are named `say`: the extraction of texts looks for that name."""

    def __init__(self, language: Language) -> None:
        self.language = language

    def __call__(self, message: str, /, **values: object) -> str:
        text = message if isinstance(message, Text) and not values else Text(message, **values)
        return text.in_language(self.language)
