"""What the commands have in common: options, exit codes, ways to print."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, tzinfo
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from daemon.language import tr

if TYPE_CHECKING:
    from daemon.settings import Machine, Settings

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
        metavar=tr("FILE"),
        envvar="MCFD_CONFIG",
        help=tr("The configuration file; otherwise /etc/mcfd/mcfd.toml, then ./mcfd.toml."),
    )(command)


def json_option(command: F) -> F:
    return click.option("--json", "as_json", is_flag=True, help=tr("Answer in JSON, for scripts."))(command)


def nim_option(*, required: bool = False) -> Callable[[F], F]:
    return click.option("--nim", default="", required=required, callback=check_nim, help=tr("The machine's NIM."))


def nim_argument_option(command: F) -> F:
    """Which machine; not needed where there is only one, and short is enough."""
    return click.option("--nim", default="", help=tr("The machine's NIM, where there are several; short is enough."))(
        command
    )


def find_machine(settings: Settings, nim: str) -> Machine:
    """Failure names the machines that there are."""
    machine = settings.find_machine(nim)
    if machine is None:
        nims = ", ".join(machine.nim for machine in settings.machine)
        if nim:
            raise Failure(tr("{nim} is not in the configuration; there is {nims}", nim=nim, nims=nims))
        raise Failure(tr("which one? {nims}", nims=nims))
    return machine


def check_nim(_: click.Context, __: click.Parameter, value: str) -> str:
    from daemon.settings.check import NIM, quoted

    if value and not NIM.fullmatch(value):
        raise click.BadParameter(
            tr(
                "{value} is not a NIM (two capital letters, eight digits, and maybe - and a counter, as EL02000015-1)",
                value=quoted(value),
            )
        )
    return value


def examples(*lines: str) -> str:
    """The end of a command's help; click keeps the lines as they are."""
    return "\b\n" + "\n".join((tr("Examples:"), *(f"  {line}" for line in lines)))


def complain(message: str) -> None:
    """One line on stderr, whatever the message was made of."""
    click.echo("mcfd: " + " ".join(message.split()), err=True)


def warn(message: object) -> None:
    """For people, beside what a script reads from stdout."""
    complain(str(message))


def coloured(text: str, colour: str) -> str:
    """At a terminal, unless NO_COLOR is set (no-color.org)."""
    return click.style(text, fg=colour) if sys.stdout.isatty() and not os.environ.get("NO_COLOR") else text


def say(message: object) -> None:
    click.echo(str(message))


def moment(at: int, zone: tzinfo) -> str:
    """Milliseconds as the shop's date and time; nothing for 0."""
    return datetime.fromtimestamp(at / 1000, zone).strftime("%Y-%m-%d %H:%M:%S") if at else ""


def stamp(at: int) -> str | None:
    """The same for scripts: RFC 3339 in UTC, None for 0."""
    from daemon.core.clock import millis_text

    return millis_text(at) if at else None


def progress_option(command: F) -> F:
    """For the page, which shows it: `{"done": n, "of": n}` a line on stderr, `of` 0 where it is not known."""
    return click.option("--progress", "telling", is_flag=True, hidden=True)(command)


def tell_progress(done: int, of: int = 0) -> None:
    import msgspec

    click.echo(msgspec.json.encode({"done": done, "of": of}).decode(), err=True)


def print_json(value: object) -> None:
    import msgspec

    click.echo(msgspec.json.format(msgspec.json.encode(value), indent=2).decode())


def print_table(heads: Iterable[str], rows: Iterable[Sequence[object]]) -> None:
    """Columns as wide as they need to be; the last one ends where it ends."""
    table = [list(heads), *([str(cell) for cell in row] for row in rows)]
    widths = [max(len(row[column]) for row in table) for column in range(len(table[0]))]
    for row in table:
        click.echo("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
