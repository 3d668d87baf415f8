from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from daemon.cli import answers, helps
from daemon.cli.ledger import now, with_ledger
from daemon.cli.shared import (
    config_option,
    examples,
    json_option,
    moment,
    nim_option,
    print_json,
    print_table,
    say,
    stamp,
    warn,
)
from daemon.core.certification import Mode
from daemon.settings import load

if TYPE_CHECKING:
    from daemon.store.keys import ApiKey


@click.group("keys", help=str(helps.HELP_KEYS))
def command() -> None:
    pass


@command.command(
    "create",
    help=str(helps.HELP_KEYS_CREATE),
    epilog=examples(
        'mcfd keys create --nim EL02000015-1 --label "caisse 1"',
        "KEY=$(mcfd keys create --nim EL02000015-1 --test)",
    ),
)
@config_option
@nim_option(required=True)
@click.option("--test", is_flag=True, help=str(helps.HELP_TEST))
@click.option("--label", default="", help=str(helps.HELP_LABEL))
def create(config: Path | None, nim: str, test: bool, label: str) -> None:
    settings = load(config)
    if nim not in [machine.nim for machine in settings.machine]:
        warn(answers.NIM_NOT_CONFIGURED(nim=nim))
    mode: Mode = "test" if test else "live"
    key = with_ledger(settings, lambda store: store.create_key(nim, mode, label, at=now()), make=True)
    click.echo(key)


@command.command(
    "list", help=str(helps.HELP_KEYS_LIST), epilog=examples("mcfd keys list", "mcfd keys list --all --json")
)
@config_option
@nim_option()
@click.option("--all", "revoked_too", is_flag=True, help=str(helps.HELP_ALL))
@json_option
def list_keys(config: Path | None, nim: str, revoked_too: bool, as_json: bool) -> None:
    settings = load(config)
    found = with_ledger(settings, lambda store: store.list_keys())
    keys = [key for key in found if nim in ("", key.nim) and (revoked_too or not key.revoked_at)]
    if as_json:
        print_json([_shown(key) for key in keys])
        return
    zone = settings.reports.zone
    print_table(
        (answers.ID, "NIM", answers.MODE, answers.LABEL, answers.CREATED, answers.REVOKED),
        [
            (key.id, key.nim, key.mode, key.label, moment(key.created_at, zone), moment(key.revoked_at, zone))
            for key in keys
        ],
    )


@command.command("revoke", help=str(helps.HELP_KEYS_REVOKE), epilog=examples("mcfd keys list", "mcfd keys revoke 3"))
@config_option
@click.argument("key_id", metavar="ID", type=click.IntRange(min=1))
def revoke(config: Path | None, key_id: int) -> None:
    with_ledger(load(config), lambda store: store.revoke_key(key_id, at=now()))
    say(answers.KEY_REVOKED(id=key_id))


def _shown(key: ApiKey) -> dict[str, object]:
    return {
        "id": key.id,
        "nim": key.nim,
        "mode": key.mode,
        "label": key.label,
        "created_at": stamp(key.created_at),
        "revoked_at": stamp(key.revoked_at),
    }
