"""Output of commands, for people and for scripts. A command fails with one line and an exit code."""

from __future__ import annotations

import errno
import os
import re
import signal
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from datetime import datetime, tzinfo
from functools import partial
from typing import TYPE_CHECKING, Any, BinaryIO, Final

import click

from common.files import replacing
from common.language import Counted, Text, ambient, tr, translate
from common.language.system import reason
from common.one_line import fault_of_line
from common.web.formats import visible
from daemon.core.audit import LONGEST_REASON
from daemon.owner import as_owner

if TYPE_CHECKING:
    from pathlib import Path

    from daemon.settings import Machine, Settings
    from daemon.store.maintenance.verify import VerifyResult


FOUND_WRONG = 1
WRONG_USE = 2
UNAVAILABLE = 3
INTERRUPTED = 130
NO_ROOM = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


def in_words(message: object, /, **values: object) -> str:
    """A text or an error in the terminal's language."""
    return tr(message, **values) if isinstance(message, str) else str(translate(message, ambient()))


class Failure(click.ClickException):
    """Something is wrong or was refused: one line on stderr."""

    exit_code = FOUND_WRONG

    def __init__(self, message: object, /, **values: object) -> None:
        super().__init__(in_words(message, **values))


class Unavailable(Failure):
    """It cannot be done now."""

    exit_code = UNAVAILABLE


class Stopped(SystemExit):
    """By SIGTERM. asyncio lets no other exception out of a task."""


def clean_up_when_stopped() -> None:
    """From now on SIGTERM removes what this process has begun before it ends by the signal. Without this it ends at once, also within a long
    call of SQLite, which is better where nothing is left."""

    def stop(*_: object) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        raise Stopped

    signal.signal(signal.SIGTERM, stop)


def not_written(path: Path, error: OSError) -> Failure:
    """The error for a file that was not written, or not completely."""
    if isinstance(error, FileExistsError):
        return Failure("{path} exists already", path=path)
    if isinstance(error, FileNotFoundError) and not path.parent.is_dir():
        return Failure(
            "{path} cannot be written: there is no folder {folder} (stick mounted?)", path=path, folder=path.parent
        )
    failure = Unavailable if error.errno in NO_ROOM else Failure
    return failure("{path} cannot be written: {why}", path=path, why=reason(error))


@contextmanager
def writing(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise not_written(path, error) from None


@contextmanager
def output_file(path: Path, mode: int = 0o600, *, is_new: bool = True) -> Iterator[BinaryIO]:
    """A file that a person has named, complete or not there; an existing one stays if it `is_new`."""
    access = partial(as_owner, path.parent)
    with writing(path), replacing(path, mode, is_new=is_new, reads_back=True, access=access) as file:
        yield file


def require_terminal(option: str) -> None:
    """A script is not prompted: it uses `option` instead."""
    if not sys.stdin.isatty():
        raise click.UsageError(tr("without a terminal {option} is needed", option=option))


def read_reason(option: str) -> str:
    """The reason of a decision: `option` as `--reason`, else at a prompt; BadParameter if it is too long or not one line."""
    if why := option.strip():
        if fault := fault_of_line(why, LONGEST_REASON):
            raise click.BadParameter(tr(fault), param_hint="--reason")
        return why
    require_terminal("--reason")
    while fault := fault_of_line(why := str(click.prompt(tr("Reason"))).strip(), LONGEST_REASON):
        complain(fault)
    return why


def not_restored(file: Path, error: OSError) -> Failure:
    """The error for a failed read of `file`, or a failed copy of it beside the ledger."""
    if error.errno in NO_ROOM:
        return Unavailable("no room to put {path} back: {why}", path=file, why=reason(error))
    return Failure("{path} cannot be read: {why}", path=file, why=reason(error))


def find_machine(settings: Settings, nim: str) -> Machine:
    """Raises Failure, which lists the configured machines."""
    machine = settings.find_machine(nim)
    if machine is None:
        nims = ", ".join(machine.nim for machine in settings.machine)
        if nim:
            raise Failure("{nim} is not in the configuration; there is {nims}", nim=nim, nims=nims)
        raise Failure("which one? {nims}", nims=nims)
    return machine


_SPACES = re.compile(r"[ \t\r\n]+")  # not the no-break space of French
SECONDS_BETWEEN_LINES: Final = 10.0


def complain(message: object, /, **values: object) -> None:
    """Prints one line on stderr, for people; scripts read stdout."""
    click.echo("mcfd: " + visible(_SPACES.sub(" ", in_words(message, **values)).strip(" ")), err=True)


def coloured(text: str, colour: str) -> str:
    """Coloured at a terminal, unless NO_COLOR is set (no-color.org)."""
    return click.style(text, fg=colour) if sys.stdout.isatty() and not os.environ.get("NO_COLOR") else text


def say(message: object, /, **values: object) -> None:
    click.echo(in_words(message, **values))


def moment(at: int, zone: tzinfo) -> str:
    """Milliseconds as the shop's date and time; empty for 0."""
    return datetime.fromtimestamp(at / 1000, zone).strftime("%Y-%m-%d %H:%M:%S") if at else ""


def stamp(at: int) -> str | None:
    """Milliseconds for scripts: RFC 3339 in UTC; None for 0."""
    from daemon.core.clock import millis_text

    return millis_text(at) if at else None


def record_json(record: Any, *names: str, **instead: object) -> dict[str, object]:
    """A record's fields, all or `names`, for scripts; times as in `stamp`. `instead` replaces or adds fields."""
    fields = {name: getattr(record, name) for name in names or record.__struct_fields__}
    return {
        name: stamp(value) if name == "at" or name.endswith("_at") else value for name, value in fields.items()
    } | instead


def _words(value: object) -> str:
    """A text in JSON is in English, whatever the terminal's language."""
    if isinstance(value, Text):
        return str(value)
    raise TypeError


def print_json(value: object) -> None:
    import msgspec

    click.echo(msgspec.json.format(msgspec.json.encode(value, enc_hook=_words), indent=2).decode())


def print_pairs(pairs: list[tuple[object, object]]) -> None:
    width = max(len(str(name)) for name, _ in pairs)
    for name, value in pairs:
        say(f"{name!s:<{width}}  {value}")


def print_table(heads: Iterable[str], rows: Iterable[Sequence[object]]) -> None:
    """Columns as wide as their content; the last one is not padded."""
    table = [list(heads), *([visible(str(cell)) for cell in row] for row in rows)]
    widths = [max(len(row[column]) for row in table) for column in range(len(table[0]))]
    for row in table:
        click.echo("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


def figures(findings: VerifyResult) -> dict[str, object]:
    """The result of a verification, for `--json`."""
    found = {name: [tr(text) for text in getattr(findings, name)] for name in ("problems", "notes")}
    return found | {name: getattr(findings, name) for name in ("books", "records", "closures")}


def counts(findings: VerifyResult) -> dict[str, Text]:
    """The same for people: `records` and `closures` in a sentence."""
    return {
        "records": Counted("{count} record", "{count} records", findings.records),
        "closures": Counted("{count} Z closure", "{count} Z closures", findings.closures),
    }


class Progress(AbstractContextManager["Progress"]):
    """Takes the amount done and the total (0: unknown); a new total begins a new bar. Prints on stderr,
    or, `for_program`, in lines that a program reads (`--progress`)."""

    def __init__(self, *, for_program: bool = False) -> None:
        self._for_program = for_program
        self._at_terminal = sys.stderr.isatty()
        self._bar: Any = None
        self._of = self._done = 0
        self._last_at = time.monotonic()

    def __call__(self, done: int, of: int = 0) -> None:
        if self._for_program:
            click.echo(f'{{"done":{done},"of":{of}}}', err=True)
        elif self._at_terminal and of:
            self._move(done, of)
        elif time.monotonic() - self._last_at >= SECONDS_BETWEEN_LINES:
            self._last_at = time.monotonic()
            click.echo(tr("{done} of {of} done …", done=done, of=of or "?"), err=True)

    def _move(self, done: int, of: int) -> None:
        if self._bar is None or of != self._of or done < self._done:
            self._end()
            self._bar = click.progressbar(length=of, file=sys.stderr, show_percent=True, show_eta=True)
            self._bar.__enter__()
            self._of, self._done = of, 0
        self._bar.update(done - self._done)
        self._done = done

    def _end(self) -> None:
        if self._bar is not None:
            self._bar.__exit__(None, None, None)
            self._bar = None

    def __exit__(self, *_: object) -> None:
        self._end()
