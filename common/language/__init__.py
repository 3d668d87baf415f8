"""Texts for people: English in the code, translations by gettext.

The English text is its own id; `locales/fr/LC_MESSAGES/mcfd.po` has the French. `make venv` compiles it, `make check` fails
on an entry that is missing, fuzzy or no longer used (CONTRIBUTING: how a text is added)."""

from __future__ import annotations

import gettext
import os
from collections.abc import Mapping
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


def ambient(environ: Mapping[str, str] = os.environ) -> Language:
    """Of the terminal: French unless the locale says English (the first that is set of `LC_ALL`, `LC_MESSAGES`, `LANG`)."""
    for name in ("LC_ALL", "LC_MESSAGES", "LANG"):
        if value := environ.get(name):
            return "en" if value.lower().startswith("en") else "fr"
    return "fr"


@cache
def catalogue(language: Language) -> gettext.NullTranslations:
    """English is what stands in the code. A catalogue that is not there must not stop a till: then the French is English."""
    if language == "en":
        return gettext.NullTranslations()
    return gettext.translation(DOMAIN, FOLDER, [language], fallback=True)


def translated(message: str, language: Language) -> str:
    return catalogue(language).gettext(message) if message else ""


class Text(str):
    """A sentence for people whose language is known only when it is printed.

    As a string it is the English sentence with its values in it, for logs and for what is stored; `in_language` gives it in any
    language. Values that are texts themselves are translated too."""

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
        return sentence.format(**{name: tell(value, language) for name, value in self.values.items()})


NO_TEXT = Text(_EMPTY)


class Counted(Text):
    """So many of something, in the words for one of them or for several; `number` decides, and is `{count}` unless that is given otherwise.

    The catalogue has each of the two as a text of its own."""

    __slots__ = ("number", "one", "several")

    number: int
    one: str
    several: str

    def __new__(cls, one: str, several: str, number: int, /, **values: object) -> Self:
        text = super().__new__(cls, one if number == 1 else several, **{"count": number, **values})
        text.number, text.one, text.several = number, one, several
        return text

    def in_language(self, language: Language) -> str:
        """French says none of something as one of it, English as several."""
        is_one = self.number == 1 or (self.number == 0 and language == "fr")
        return Text(self.one if is_one else self.several, **self.values).in_language(language)


def tell(value: object, language: Language) -> object:
    """A text in that language, or an error whose sentence is one; anything else as it is."""
    if isinstance(value, Exception):
        value = sentence(value)
    return value.in_language(language) if isinstance(value, Text) else value


def sentence(error: Exception) -> Text:
    """What an error says: its text where it was raised with one, so that it can still be translated."""
    return next((part for part in error.args if isinstance(part, Text)), None) or Text(str(error))


def chosen(choice: str, accept_language: str, configured: Language) -> Language:
    """Of a page: the person's choice, then the browser's, then the configuration's."""
    return next((language for language in LANGUAGES if language == choice), None) or preferred(
        accept_language, configured
    )


def preferred(accept_language: str, otherwise: Language = "en") -> Language:
    """Of an Accept-Language header: the first of ours in it by weight; `otherwise`, English for programs, where it names none. What no browser
    would send is not looked at: a stranger's header must not cost more than his bytes."""
    best, weight = otherwise, 0.0
    for part in accept_language[:LONGEST_WISH].split(","):
        name, _, options = part.strip().partition(";")
        weight_text = options.strip().removeprefix("q=")
        try:
            value = float(weight_text) if weight_text else 1.0
        except ValueError:
            continue
        primary = name.strip().lower().partition("-")[0]
        match = next((language for language in LANGUAGES if language == primary), None)
        if match and value > weight:
            best, weight = match, value
    return best


def tr(message: str, /, **values: object) -> str:
    """A sentence in the language of the terminal; of a text for later, too."""
    return Speaker(ambient())(message, **values)


class Speaker:
    """Tells sentences in one language; called `say` where it is used, which is what the extraction looks for."""

    def __init__(self, language: Language) -> None:
        self.language = language

    def __call__(self, message: str, /, **values: object) -> str:
        text = message if isinstance(message, Text) and not values else Text(message, **values)
        return text.in_language(self.language)
