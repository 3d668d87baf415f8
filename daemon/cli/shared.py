"""What the commands have in common: options, exit codes, ways to print."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, tzinfo
from pathlib import Path
from typing import Any, TypeVar

import click
import msgspec

from daemon import texts
from daemon.cli import helps
from daemon.core.clock import millis_text
from daemon.settings.check import NIM, quoted
from daemon.texts import Text

FOUND_WRONG = 1
WRONG_USE = 2
UNAVAILABLE = 3
INTERRUPTED = 130

F = TypeVar("F", bound=Callable[..., Any])


class Failure(click.ClickException):
    """Something is wrong or was refused; one line on stderr."""

    exit_code = FOUND_WRONG

    def __init__(self, message: object) -> None:
        super().__init__(str(message))


class Unavailable(Failure):
    """It cannot be done now."""

    exit_code = UNAVAILABLE


def config_option(command: F) -> F:
    return click.option(
        "--config",
        "config",
        type=click.Path(path_type=Path),
        metavar=str(helps.FILE),
        envvar="MCFD_CONFIG",
        help=str(helps.HELP_CONFIG_OPTION),
    )(command)


def json_option(command: F) -> F:
    return click.option("--json", "as_json", is_flag=True, help=str(helps.HELP_JSON))(command)


def nim_option(*, required: bool = False) -> Callable[[F], F]:
    return click.option("--nim", default="", required=required, callback=check_nim, help=str(helps.HELP_NIM))


def check_nim(_: click.Context, __: click.Parameter, value: str) -> str:
    if value and not NIM.fullmatch(value):
        raise click.BadParameter(texts.BAD_NIM(value=quoted(value)))
    return value


def examples(*lines: str) -> str:
    """The end of a command's help; click keeps the lines as they are."""
    return "\b\n" + "\n".join((str(helps.EXAMPLES), *(f"  {line}" for line in lines)))


def complain(message: str) -> None:
    """One line on stderr, whatever the message was made of."""
    click.echo("mcfd: " + " ".join(message.split()), err=True)


def warn(message: object) -> None:
    """For people, beside what a script reads from stdout."""
    complain(str(message))


def say(message: object) -> None:
    click.echo(str(message))


def moment(at: int, zone: tzinfo) -> str:
    """Milliseconds as the shop's date and time; nothing for 0."""
    return datetime.fromtimestamp(at / 1000, zone).strftime("%Y-%m-%d %H:%M:%S") if at else ""


def stamp(at: int) -> str | None:
    """The same for scripts: RFC 3339 in UTC, None for 0."""
    return millis_text(at) if at else None


def print_json(value: object) -> None:
    click.echo(msgspec.json.format(msgspec.json.encode(value), indent=2).decode())


def print_table(heads: Iterable[Text | str], rows: Iterable[Sequence[object]]) -> None:
    """Columns as wide as they need to be; the last one ends where it ends."""
    table = [[str(head) for head in heads], *([str(cell) for cell in row] for row in rows)]
    widths = [max(len(row[column]) for row in table) for column in range(len(table[0]))]
    for row in table:
        click.echo("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
