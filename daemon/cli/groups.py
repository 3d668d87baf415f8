"""A group that imports a command when it is called and lists commands from a table. Also makes click take its texts
from our catalogue: click uses gettext, whose folder is set here."""

import gettext
import os
from collections.abc import Mapping
from importlib import import_module
from typing import Any, Final, NamedTuple

import click
from click import HelpFormatter

from common.language import DOMAIN, FOLDER, Text, ambient, tr

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
    Text("required"),
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
"""As in click 8, for the catalogue; a text that click changes is in English until it is changed here."""


COMMANDS: Final = "daemon.cli.commands"


class Member(NamedTuple):
    """A command's help, so that a list imports no command; its module in `commands` if not of the same name, and its
    attribute there."""

    help: str
    module: str = ""
    name: str = "command"


class LazyGroup(click.Group):
    """Its own commands come first, in alphabetical order, then `members` in their order."""

    def __init__(self, name: str | None, members: Mapping[str, Member], **attributes: Any) -> None:
        super().__init__(name, subcommand_metavar=tr("COMMAND [ARGS]..."), **attributes)
        self.members = members

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [*super().list_commands(ctx), *self.members]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.members:
            return super().get_command(ctx, cmd_name)
        member = self.members[cmd_name]
        command: click.Command = getattr(import_module(f"{COMMANDS}.{member.module or cmd_name}"), member.name)
        command.help = tr(member.help)
        if isinstance(command, click.Group):
            command.subcommand_metavar = tr("COMMAND [ARGS]...")
        return command

    def format_commands(self, ctx: click.Context, formatter: HelpFormatter) -> None:
        names = self.list_commands(ctx)
        width = formatter.width - 6 - max(map(len, names))
        with formatter.section(tr("Commands")):
            formatter.write_dl([(name, self._listed(name).get_short_help_str(width)) for name in names])

    def _listed(self, name: str) -> click.Command:
        if name in self.members:
            return click.Command(name, help=tr(self.members[name].help))
        return self.commands[name]


class Plural(NamedTuple):
    """A text of click in its two forms; gettext chooses."""

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
    click.STRING.name, click.INT.name, click.IntRange.name = tr("TEXT"), tr("number"), tr("number")
