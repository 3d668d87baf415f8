"""A group whose commands are imported when they are called; what it lists of them stands in its table."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any, NamedTuple

import click
from click import HelpFormatter

from common.language import Text, tr


class Member(NamedTuple):
    """Where its `command` is, and what it says of itself: so that a list of all of them imports none."""

    module: str
    help: Text


class LazyGroup(click.Group):
    """Commands of its own come first, in the order of the alphabet, then those of `members`, in theirs."""

    def __init__(self, name: str | None, members: Mapping[str, Member], **attributes: Any) -> None:
        super().__init__(name, subcommand_metavar=tr("COMMAND [ARGS]..."), **attributes)
        self.members = members

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [*super().list_commands(ctx), *self.members]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.members:
            return super().get_command(ctx, cmd_name)
        member = self.members[cmd_name]
        command: click.Command = import_module(member.module).command
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
