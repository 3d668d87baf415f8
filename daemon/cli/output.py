"""What commands print: for people, and for scripts."""

from __future__ import annotations

import os
import re
import sys
import time
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from datetime import datetime, tzinfo
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final

import click

from common.language import Counted, Text, tr
from common.web.formats import visible
from daemon.cli.failures import in_words

if TYPE_CHECKING:
    from daemon.store.maintenance.verify import VerifyResult

_SPACES = re.compile(r"[ \t\r\n]+")  # but not the no-break space of French
SECONDS_BETWEEN_LINES: Final = 10.0


def complain(message: object, /, **values: object) -> None:
    """One line on stderr, whatever the message was made of: for people, beside what a script reads from stdout."""
    click.echo("mcfd: " + visible(_SPACES.sub(" ", in_words(message, **values)).strip(" ")), err=True)


def coloured(text: str, colour: str) -> str:
    """At a terminal, unless NO_COLOR is set (no-color.org)."""
    return click.style(text, fg=colour) if sys.stdout.isatty() and not os.environ.get("NO_COLOR") else text


def say(message: object, /, **values: object) -> None:
    click.echo(in_words(message, **values))


def moment(at: int, zone: tzinfo) -> str:
    """Milliseconds as the shop's date and time; nothing for 0."""
    return datetime.fromtimestamp(at / 1000, zone).strftime("%Y-%m-%d %H:%M:%S") if at else ""


def stamp(at: int) -> str | None:
    """The same for scripts: RFC 3339 in UTC, None for 0."""
    from daemon.core.clock import millis_text

    return millis_text(at) if at else None


def record_json(record: Any, *names: str, **instead: object) -> dict[str, object]:
    """A record's fields for scripts, all or those `names`: times as `stamp` has them; `instead` in their place, or beside."""
    fields = {name: getattr(record, name) for name in names or record.__struct_fields__}
    return {
        name: stamp(value) if name == "at" or name.endswith("_at") else value for name, value in fields.items()
    } | instead


def print_progress(done: int, of: int = 0) -> None:
    import msgspec

    click.echo(msgspec.json.encode({"done": done, "of": of}).decode(), err=True)


def _words(value: object) -> str:
    """A text as JSON has it: in English, whatever the terminal speaks."""
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
    """Columns as wide as they need to be; the last one ends where it ends."""
    table = [list(heads), *([visible(str(cell)) for cell in row] for row in rows)]
    widths = [max(len(row[column]) for row in table) for column in range(len(table[0]))]
    for row in table:
        click.echo("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


def figures(findings: VerifyResult) -> dict[str, object]:
    """What a look through a ledger found, for `--json`."""
    found = {name: [tr(text) for text in getattr(findings, name)] for name in ("problems", "notes")}
    return found | {name: getattr(findings, name) for name in ("books", "records", "closures")}


def counts(findings: VerifyResult) -> dict[str, Text]:
    """The same for people: `records` and `closures` of a sentence."""
    return {
        "records": Counted("{count} record", "{count} records", findings.records),
        "closures": Counted("{count} Z closure", "{count} Z closures", findings.closures),
    }


class Progress(AbstractContextManager["Progress"]):
    """Takes how much is done, and of how much (0: not known); a new total begins a new bar. On stderr, which no script reads."""

    def __init__(self, *, telling: bool = False) -> None:
        self._telling = telling
        self._at_terminal = sys.stderr.isatty()
        self._bar: Any = None
        self._of = self._done = 0
        self._last_at = time.monotonic()

    def __call__(self, done: int, of: int = 0) -> None:
        if self._telling:
            print_progress(done, of)
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

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end()
