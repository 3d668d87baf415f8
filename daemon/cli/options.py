"""Options that several commands have, and how a command describes itself."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from daemon.language import tr

F = TypeVar("F", bound=Callable[..., Any])


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


def file_option(name: str, text: str) -> Callable[[F], F]:
    """A path of a file; `text` says what for."""
    return click.option(name, type=click.Path(path_type=Path), metavar=tr("FILE"), help=text)


def nim_option(*, required: bool = False) -> Callable[[F], F]:
    return click.option("--nim", default="", required=required, callback=check_nim, help=tr("The machine's NIM."))


def nim_argument_option(command: F) -> F:
    """Which machine; not needed where there is only one, and short is enough."""
    return click.option("--nim", default="", help=tr("The machine's NIM, where there are several; short is enough."))(
        command
    )


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


def described(what: str, *lines: str) -> dict[str, Any]:
    """For the decorator of a command: what it does, and examples."""
    return {"help": what, "epilog": examples(*lines)}


def progress_option(command: F) -> F:
    """For the page, which shows it: `{"done": n, "of": n}` a line on stderr, `of` 0 where it is not known."""
    return click.option("--progress", "telling", is_flag=True, hidden=True)(command)
