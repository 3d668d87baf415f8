"""How a command fails: one line, and an exit code."""

from __future__ import annotations

import errno
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from common.language import ambient, tell, tr
from common.language.system import reason

if TYPE_CHECKING:
    from pathlib import Path

    from daemon.settings import Machine, Settings

FOUND_WRONG = 1
WRONG_USE = 2
UNAVAILABLE = 3
INTERRUPTED = 130
NO_ROOM = {errno.ENOSPC, errno.EDQUOT}


def in_words(message: object, /, **values: object) -> str:
    """A sentence, or what an error says, in the language of the terminal."""
    return tr(message, **values) if isinstance(message, str) else str(tell(message, ambient()))


class Failure(click.ClickException):
    """Something is wrong or was refused; one line on stderr."""

    exit_code = FOUND_WRONG

    def __init__(self, message: object, /, **values: object) -> None:
        super().__init__(in_words(message, **values))


class Unavailable(Failure):
    """It cannot be done now."""

    exit_code = UNAVAILABLE


def not_written(path: Path, error: OSError) -> Failure:
    """`path` was not written, or not to its end."""
    if isinstance(error, FileExistsError):
        return Failure("{path} exists already", path=path)
    return Failure("{path} cannot be written: {why}", path=path, why=reason(error))


@contextmanager
def writing(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise not_written(path, error) from None


def require_terminal(option: str) -> None:
    """A script is not prompted: it gives by that option what a person is prompted for."""
    if not sys.stdin.isatty():
        raise click.UsageError(tr("without a terminal {option} is needed", option=option))


def not_restored(file: Path, error: OSError) -> Failure:
    """What was read from `file`, or copied beside the ledger, was not to its end."""
    if error.errno in NO_ROOM:
        return Unavailable("no room to put {path} back: {why}", path=file, why=reason(error))
    return Failure("{path} cannot be read: {why}", path=file, why=reason(error))


def find_machine(settings: Settings, nim: str) -> Machine:
    """Failure names the machines that there are."""
    machine = settings.find_machine(nim)
    if machine is None:
        nims = ", ".join(machine.nim for machine in settings.machine)
        if nim:
            raise Failure("{nim} is not in the configuration; there is {nims}", nim=nim, nims=nims)
        raise Failure("which one? {nims}", nims=nims)
    return machine
