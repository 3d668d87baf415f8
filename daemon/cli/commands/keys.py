from datetime import date, datetime, time, timedelta, tzinfo

import click

from common.language import tr
from common.wire.instants import now_millis
from daemon.cli.options import ROW_NUMBER, check_line, explained, json_option, nim_option, role_option, settings_option
from daemon.cli.output import complain, moment, print_json, print_table, record_json, say
from daemon.core.clock import DAY
from daemon.core.keys import LANES, LONGEST_LABEL, MAX_RATE, KeyTerms, Lane
from daemon.core.ledger.attempt import Mode
from daemon.core.machine.state import same_machine
from daemon.core.people import USUAL, Role
from daemon.ledger_access import change, read_rows
from daemon.settings import Settings
from daemon.settings.check import quoted

FAR_MS = 4_102_444_800_000
"""The year 2100."""
TIMES = ("created_at", "used_at", "expires_at", "revoked_at")


command = click.Group("keys")


@command.command(
    "create",
    **explained(
        "Make a key for a NIM and print it, alone, on stdout. It is shown only once.",
        'mcfd keys create --nim EL02000015-1 --label "caisse 1"',
        "KEY=$(mcfd keys create --nim EL02000015-1 --test)",
        'mcfd keys create --nim EL02000015-1 --role reader --expires 2027-03-31 --label "comptable"',
        'mcfd keys create --nim EL02000015-1 --via relay --signed --role seller --rate 60 --label "ERP"',
    ),
)
@settings_option
@nim_option(required=True)
@click.option("--test", is_flag=True, help=tr("A test key: simulated machine, nothing counts."))
@click.option("--label", default="", callback=check_line(LONGEST_LABEL), help=tr('Whose key it is, as "till 1".'))
@role_option(default=USUAL, show_default=True)
@click.option(
    "--expires",
    default="",
    metavar=tr("DATE"),
    help=tr("End of the key: a date (that day included) or a number of days, as 30d; without it, never."),
)
@click.option("--strict", is_flag=True, help=tr("Refuse requests with an unknown field."))
@click.option(
    "--via",
    type=click.Choice(LANES),
    default=LANES[0],
    show_default=True,
    help=tr("lan: valid on the shop's network alone; relay: through the relay alone."),
)
@click.option(
    "--signed", is_flag=True, help=tr("A private key that signs each request, of which the box keeps the public half.")
)
@click.option(
    "--rate",
    type=click.IntRange(min=1, max=MAX_RATE),
    default=None,
    help=tr("Requests a minute through the relay, then 429; without it, any number."),
)
def create(
    settings: Settings,
    nim: str,
    test: bool,
    label: str,
    *,
    role: Role,
    expires: str,
    strict: bool,
    via: Lane,
    signed: bool,
    rate: int | None,
) -> None:
    from daemon.operations import CreateKey

    end = _end(expires, settings.reports.zone)
    machine = settings.find_machine(nim)
    if machine is not None:
        nim = machine.nim
    else:
        complain("note: {nim} is not in the configuration; the key is made all the same", nim=nim)
    mode: Mode = "test" if test else "live"
    click.echo(
        change(settings, CreateKey(nim, mode, label, KeyTerms(role, end, strict, via, signed, rate or 0)), make=True)
    )


@command.command(
    "list",
    **explained("List the keys; never their value.", "mcfd keys list", "mcfd keys list --all --json"),
)
@settings_option
@nim_option()
@click.option("--all", "revoked_too", is_flag=True, help=tr("Show revoked keys too."))
@json_option
def listed(settings: Settings, nim: str, revoked_too: bool, as_json: bool) -> None:
    from daemon.store.tables.keys import list_keys, of_another_taxpayer

    found, former = read_rows(settings, list_keys), read_rows(settings, of_another_taxpayer)
    keys = [key for key in found if (not nim or same_machine(nim, key.nim)) and (revoked_too or not key.revoked_at)]
    if as_json:
        names = ("id", "nim", "mode", "role", "label", "strict", "rate", *TIMES)
        print_json(
            [
                record_json(key, *names, via=key.lane, signed=bool(key.public), of_another_taxpayer=key.id in former)
                for key in keys
            ]
        )
        return
    zone = settings.reports.zone
    print_table(
        (
            *(tr("ID"), "NIM", tr("MODE"), tr("ROLE"), tr("VIA"), tr("LABEL")),
            *(tr("CREATED"), tr("LAST USED"), tr("EXPIRES"), tr("REVOKED"), ""),
        ),
        [
            (
                *(key.id, key.nim, key.mode, key.role, key.lane, key.label),
                *(moment(getattr(key, name), zone) for name in TIMES),
                tr("of another taxpayer") if key.id in former else "",
            )
            for key in keys
        ],
    )


@command.command(
    "revoke",
    **explained("Revoke the key ID: at once, also in a running daemon.", "mcfd keys list", "mcfd keys revoke 3"),
)
@settings_option
@click.argument("key_id", metavar="ID", type=ROW_NUMBER)
def revoke(settings: Settings, key_id: int) -> None:
    from daemon.operations import RevokeKey

    change(settings, RevokeKey(key_id))
    say("key {id} revoked", id=key_id)


def _end(text: str, zone: tzinfo) -> int:
    """End of that day in the shop's time zone, or of that many days from now (`30d`), in ms; 0 for never."""
    if not text:
        return 0
    try:
        if text.endswith("d"):
            end = now_millis() + int(text[:-1]) * DAY
        else:
            day = datetime.combine(date.fromisoformat(text), time(), zone) + timedelta(days=1)
            end = int(day.timestamp() * 1000)
    except (ValueError, OverflowError):
        end = 0
    if not now_millis() < end < FAR_MS:
        raise click.BadParameter(
            tr("{value} is neither a day to come (2027-03-31) nor a number of days (30d)", value=quoted(text)),
            param_hint="--expires",
        )
    return end
