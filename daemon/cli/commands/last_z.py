"""`mcfd machine last-z`: the last Z on paper, after a restore onto a disk where nothing remembers what was given since (decision 30)."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from common.language import tr
from daemon.cli.book import read_book
from daemon.cli.failures import Failure
from daemon.cli.options import examples, settings_option
from daemon.cli.output import say
from daemon.ledger_access import change, read_ledger
from daemon.operations import SayLastZ
from daemon.settings import Settings

if TYPE_CHECKING:
    from daemon.core.ledger.book import BookState
    from daemon.store import Store


@click.command("last-z", epilog=examples("mcfd machine last-z EL02000015-1 57"))
@settings_option
@click.argument("nim")
@click.argument("number", type=click.IntRange(0, 999_999_999))
@click.option("--yes", is_flag=True, help=tr("Ask nothing."))
def command(settings: Settings, nim: str, number: int, *, yes: bool) -> None:
    state = read_ledger(settings, lambda store: _state(store, settings, nim))
    if not state.needs_last_z:
        raise Failure(
            tr("nobody asks for it: the last Z of {nim} is {number}", nim=state.book.nim, number=state.z_number)
        )
    following = max(number, state.z_number) + 1
    if not yes and sys.stdin.isatty():
        question = tr(
            "The next Z of {nim} will be {number}; it cannot be taken back. Right?",
            nim=state.book.nim,
            number=following,
        )
        click.confirm(question, abort=True)
    change(settings, SayLastZ(state.book, number))
    say(tr("the next Z of {nim} is {number}", nim=state.book.nim, number=following))


async def _state(store: Store, settings: Settings, nim: str) -> BookState:
    return await store.ledger.state((await read_book(store, settings, nim, test=False)).book)
