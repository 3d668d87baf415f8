"""Click's own words in our catalogue: it asks gettext for them, which is told here where to look."""

from __future__ import annotations

import gettext
import os
from typing import Final

import click
import click.parser

from daemon.language import DOMAIN, FOLDER, Text, ambient

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
    Text("{value!r} is not {choice}."),
    Text("{value!r} is not one of {choices}."),
    Text("Got unexpected extra argument ({args})"),
    Text("Got unexpected extra arguments ({args})"),
    Text("Option {name!r} requires an argument."),
    Text("Did you mean {possibility}?"),
    Text("(Did you mean one of: {possibilities}?)"),
)
"""As they stand in click 8, so that the catalogue has them; one that click changes is English until it is changed here."""


def install() -> None:
    gettext.bindtextdomain(DOMAIN, FOLDER)
    gettext.textdomain(DOMAIN)
    os.environ["LANGUAGE"] = ambient()
    for module in (click.core, click.exceptions, click.parser, click.types):
        vars(module)["ngettext"] = _one_or_many  # gettext's own asks for plural forms, which our catalogue does without


def _one_or_many(one: str, many: str, count: int) -> str:
    return gettext.gettext(one if count == 1 else many)
