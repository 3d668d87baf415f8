"""Click's own words in our catalogue: it asks gettext for them, which is told here where to look."""

from __future__ import annotations

import gettext
import os
from typing import Final, NamedTuple

from common.language import DOMAIN, FOLDER, Text, ambient

WORDS: Final = (
    Text("Usage:"),
    Text("Options"),
    Text("Commands"),
    Text("Missing argument"),
    Text("Missing option"),
    Text("Missing parameter"),
    Text("Missing command."),
    Text("No such command {name!r}."),
    Text("No such option {name!r}."),
    Text("Option {name!r} does not take a value."),
    Text("Invalid value for {param_hint}: {message}"),
    Text("Invalid value: {message}"),
    Text("Choose from:\n\t{choices}"),
    Text("Show this message and exit."),
    Text("default: {default}"),
    Text("Error: invalid input"),
    Text("Do you want to continue?"),
    Text("directory"),
    Text("file"),
    Text("path"),
    Text("{name} {filename!r} does not exist."),
    Text("{name} {filename!r} is a directory."),
    Text("{name} {filename!r} is a file."),
    Text("{name} {filename!r} is not readable."),
    Text("{name} {filename!r} is not writable."),
    Text("{value!r} is not a valid {number_type}."),
    Text("{value} is not in the range {range}."),
)
"""As they stand in click 8, so that the catalogue has them; one that click changes is English until it is changed here."""


class Plural(NamedTuple):
    """One sentence of click in its two forms; gettext chooses."""

    one: str
    several: str


PLURALS: Final = (
    Plural("{value!r} is not {choice}.", "{value!r} is not one of {choices}."),
    Plural("Got unexpected extra argument ({args})", "Got unexpected extra arguments ({args})"),
    Plural("Option {name!r} requires an argument.", "Option {name!r} requires {nargs} arguments."),
    Plural("Did you mean {possibility}?", "(Did you mean one of: {possibilities}?)"),
)


def install() -> None:
    gettext.bindtextdomain(DOMAIN, FOLDER)
    gettext.textdomain(DOMAIN)
    os.environ["LANGUAGE"] = ambient()
