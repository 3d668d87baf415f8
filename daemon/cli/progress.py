"""How far a long command is: a bar with the time left at a terminal, a line now and then where there is none, JSON for the page."""

from __future__ import annotations

import sys
import time
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Any, Final

import click

from daemon.cli.output import tell_progress
from daemon.language import tr

SECONDS_BETWEEN_LINES: Final = 10.0


class Progress(AbstractContextManager["Progress"]):
    """Told how much is done, and of how much (0: not known); a new total begins a new bar. On stderr, which no script reads."""

    def __init__(self, *, telling: bool = False) -> None:
        self._telling = telling
        self._at_terminal = sys.stderr.isatty()
        self._bar: Any = None
        self._of = self._done = 0
        self._told_at = time.monotonic()

    def __call__(self, done: int, of: int = 0) -> None:
        if self._telling:
            tell_progress(done, of)
        elif self._at_terminal and of:
            self._move(done, of)
        elif time.monotonic() - self._told_at >= SECONDS_BETWEEN_LINES:
            self._told_at = time.monotonic()
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
