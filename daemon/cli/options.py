"""Options that several commands share, and the help texts of a command."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from common.language import tr
from common.one_line import fault_of_line
from daemon.core.machine.state import short_nim
from daemon.core.people import ROLES, fault_of_name

if TYPE_CHECKING:
    from daemon.settings import Settings
    from daemon.store.maintenance.numbers import LastZ

MAX_Z_DIGITS: Final = 9
ROW_NUMBER: Final = click.IntRange(1, 999_999_999)
"""Id of a row in the ledger."""
USUAL_LIMIT: Final = 50
F = TypeVar("F", bound=Callable[..., Any])


def config_option(command: F) -> F:
    return _file_of_settings("config")(command)


def settings_option(command: F) -> F:
    """The same option; the command receives the `settings` from the file."""
    return _file_of_settings("settings", callback=_load)(command)


def _file_of_settings(name: str, **attributes: Any) -> Callable[[F], F]:
    return click.option(
        "--config",
        name,
        type=click.Path(path_type=Path),
        metavar=tr("FILE"),
        envvar="MCFD_CONFIG",
        help=tr("The configuration file; otherwise /etc/mcfd/mcfd.toml, then ./mcfd.toml."),
        **attributes,
    )


def _load(_: click.Context, __: click.Parameter, file: Path | None) -> Settings:
    from daemon.settings import load

    return load(file)


def json_option(command: F) -> F:
    return click.option("--json", "as_json", is_flag=True, help=tr("Answer in JSON, for scripts."))(command)


def file_option(name: str, text: str, *, dir_okay: bool = True) -> Callable[[F], F]:
    return click.option(name, type=click.Path(path_type=Path, dir_okay=dir_okay), metavar=tr("FILE"), help=text)


def folder_option(*names: str, text: str, **attributes: Any) -> Callable[[F], F]:
    folder = click.Path(file_okay=False, path_type=Path)
    return click.option(*names, type=folder, metavar=tr("FOLDER"), help=text, **attributes)


def nim_option(*, required: bool = False) -> Callable[[F], F]:
    return click.option("--nim", default="", required=required, callback=check_nim, help=tr("The machine's NIM."))


def nim_argument_option(command: F) -> F:
    """The machine; needed only with several, and its short NIM is enough."""
    return click.option("--nim", default="", help=tr("The machine's NIM, where there are several; short is enough."))(
        command
    )


def check_name(_: click.Context, __: click.Parameter, value: str) -> str:
    if fault := fault_of_name(value):
        raise click.BadParameter(tr(fault))
    return value


def check_line(longest: int) -> Callable[[click.Context, click.Parameter, str | None], str | None]:
    """For the callback of an option: a text of one line, or none."""

    def check(_: click.Context, __: click.Parameter, value: str | None) -> str | None:
        if fault := fault_of_line(value or "", longest, may_be_blank=True):
            raise click.BadParameter(tr(fault))
        return value

    return check


def range_options(command: F) -> F:
    command = click.option("--to", default=None, help=tr("Last day, or an instant; otherwise now."))(command)
    return click.option("--from", "from_", default=None, help=tr("First day, or an instant."))(command)


def test_option(command: F) -> F:
    return click.option("--test", is_flag=True, help=tr("Those of the sandbox."))(command)


def limit_option(most: int, text: str) -> Callable[[F], F]:
    return click.option("--limit", type=click.IntRange(1, most), default=USUAL_LIMIT, show_default=True, help=text)


def role_option(**attributes: Any) -> Callable[[F], F]:
    text = tr("seller: sell; reader: read the reports; manager: both, and close; technician: everything.")
    return click.option("--role", type=click.Choice(ROLES), help=text, **attributes)


def check_nim(_: click.Context, __: click.Parameter, value: str) -> str:
    from daemon.settings.check import NIM, not_a_nim

    if value and not NIM.fullmatch(value):
        raise click.BadParameter(not_a_nim(value))
    return value


def examples(*lines: str) -> str:
    """The end of a command's help; click keeps the line breaks."""
    return "\b\n" + "\n".join((tr("Examples:"), *(f"  {line}" for line in lines)))


def explained(what: str, *lines: str) -> dict[str, Any]:
    """For a command's decorator: what it does, and examples."""
    return {"help": tr(what), "epilog": examples(*lines)}


def progress_option(command: F) -> F:
    """For the page: lines `{"done": n, "of": n}` on stderr; `of` is 0 if unknown."""
    return click.option("--progress", "for_program", is_flag=True, hidden=True)(command)


def last_z_option(command: F) -> F:
    return click.option(
        "--last-z",
        multiple=True,
        metavar=tr("[NIM=]NUMBER"),
        callback=_read_last_z,
        help=tr(
            "Number of the last Z on paper, where the box remembers none (a new disk); for each machine, as EL02000015-1=57, where there are several."
        ),
    )(command)


def _read_last_z(context: click.Context, parameter: click.Parameter, values: tuple[str, ...]) -> LastZ:
    """A number, or numbers by NIM."""
    numbers: dict[str, int] = {}
    for value in values:
        nim, _, number = value.rpartition("=")
        if not (number.isascii() and number.isdigit() and len(number) <= MAX_Z_DIGITS):
            raise click.BadParameter(tr("{value} is not a number, or NIM=number", value=value))
        nim = check_nim(context, parameter, nim)
        if short_nim(nim) in set(map(short_nim, numbers)):
            raise click.BadParameter(tr("{value}: that machine has been said already", value=value))
        numbers[nim] = int(number)
    if "" in numbers and len(numbers) > 1:
        raise click.BadParameter(tr("each number needs its machine, as EL02000015-1=57"))
    return numbers.get("", numbers or None)
