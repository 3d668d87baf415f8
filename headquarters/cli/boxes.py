"""`mcfd-hq boxes`: boxes and their keys."""

import getpass
import re
from datetime import datetime
from pathlib import Path

import click

from common.settings import SettingsError
from common.wire.instants import now_millis
from common.wire.keys import PRIVATE, SHARED, BadKey
from headquarters.app.settings import HqSettings, join_terms
from headquarters.cli.shared import configured, opened, print_row, refusal
from headquarters.core.checks import machine_of
from headquarters.intake.joining import MAX_MINUTES, MINUTES
from headquarters.store.register import MAX_NAME, is_name, is_nim
from headquarters.store.store import HqStore

LABEL = click.option("--label", default="", help="What people call the shop.")
REGION = click.option("--region", default="", help="The group it belongs to.")


@click.group()
def boxes() -> None:
    """Boxes and their keys."""


@boxes.command()
@click.argument("nim")
@click.option("--public-key", help="whpk_… as `mcfd upstream keygen` prints it, or the U… of its NATS user.")
@click.option("--secret-file", type=click.Path(path_type=Path), help="File with the shared secret, whsec_….")
@LABEL
@REGION
@configured
def add(
    settings: HqSettings, nim: str, *, public_key: str | None, secret_file: Path | None, label: str, region: str
) -> None:
    """Add a box, or another key for one; prints the key's id."""
    _check_names(label=label, region=region)
    if (public_key is None) == (secret_file is None):
        raise refusal("either --public-key or --secret-file")
    line = public_key.strip() if public_key is not None else _secret(secret_file or Path())
    if line.startswith(PRIVATE):
        raise refusal("--public-key: that is the private key; it stays on the box")
    with opened(settings) as store:
        try:
            click.echo(store.register.add(nim, line, now=now_millis(), label=label, region=region))
        except BadKey as error:
            raise refusal(f"{'--public-key' if public_key else '--secret-file'}: {error}") from None
        except ValueError as error:
            raise refusal(f"NIM: {error}") from None


@boxes.command()
@click.argument("nims", metavar="NIM...", nargs=-1, required=True)
@LABEL
@REGION
@click.option("--minutes", type=click.IntRange(1, MAX_MINUTES), default=MINUTES, show_default=True, help="Its life.")
@configured
def code(settings: HqSettings, nims: tuple[str, ...], *, label: str, region: str, minutes: int) -> None:
    """A code by which one box with these machines joins: prints it, for `mcfd upstream join` or the box's page. It is for one use; of the codes for a
    machine only the last one counts. The box makes its own key, and no other is valid for these machines from then on."""
    _check_names(label=label, region=region)
    for nim in nims:
        if not is_nim(nim):
            raise refusal(f"{nim} is not a NIM")
    try:
        terms, at = join_terms(settings), now_millis()
    except SettingsError as error:
        raise refusal(str(error)) from None
    with opened(settings) as store:
        new_code = store.joining.make_code(
            nims, now=at, ends_at=at + minutes * 60_000, by=getpass.getuser(), label=label, region=region
        )
    try:
        click.echo(terms.link(new_code))
    except (OSError, ValueError) as error:
        raise refusal(f"server.tls_cert: {error}") from None


def _check_names(**named: str) -> None:
    for name, text in named.items():
        if not is_name(text):
            raise refusal(f"--{name}: at most {MAX_NAME} characters that can be seen")


def _secret(path: Path) -> str:
    try:
        line = path.read_text().strip()
    except (OSError, UnicodeDecodeError) as error:
        raise refusal(f"--secret-file: {error}") from None
    if not line.startswith(SHARED):
        raise refusal(f"--secret-file: {path} does not begin with {SHARED}")
    return line


@boxes.command("list")
@configured
def list_(settings: HqSettings) -> None:
    """One line for each box: NIM, region, label, ids of its valid keys."""
    with opened(settings) as store:
        ring = store.register.ring()
        for box in store.register.boxes():
            if box.retired_at is None:
                print_row(box.nim, box.region, box.label, " ".join(key.id for key in ring.keys_of(box.machine)))


@boxes.command()
@click.argument("nim")
@click.argument("key_id", required=False)
@click.option(
    "--stolen-since", metavar="DATE[THH:MM]", help="Since when others may have had it, by headquarters' clock."
)
@configured
def revoke(settings: HqSettings, nim: str, key_id: str | None, *, stolen_since: str | None) -> None:
    """What that key signs is refused from now on; what it has signed stays. Without KEY_ID all keys of the box, for each of its machines; prints
    their ids. A running headquarters cuts its connection to NATS (`mcfd-hq nats issuer`). With --stolen-since, also for a key that is revoked already: the
    closures that came under it from then on are withdrawn, kept as evidence, and requested from the box again; prints how many."""
    since = None if stolen_since is None else _millis(stolen_since, settings)
    machine = machine_of(nim)
    with opened(settings) as store:
        if key_id is None:
            _revoke_box(store, nim, since)
            return
        is_done = store.register.revoke(machine, key_id, now_millis())
        if since is None:
            if not is_done:
                raise refusal(f"{nim} has no valid key {key_id}")
            return
        withdrawn = store.register.withdraw(machine, key_id, since, now_millis())
        if withdrawn is None:
            raise refusal(f"{nim} has no key {key_id}")
        click.echo(withdrawn)


def _revoke_box(store: HqStore, nim: str, since: int | None) -> None:
    if since is not None:
        raise refusal("--stolen-since: name the key that was stolen (`mcfd-hq boxes list`)")
    ids = store.register.revoke_box(machine_of(nim), now_millis())
    if not ids:
        raise refusal(f"{nim} has no valid key")
    for key_id in ids:
        click.echo(key_id)


@boxes.command()
@click.argument("nim")
@configured
def retire(settings: HqSettings, nim: str) -> None:
    """The shop is closed for good: its keys are revoked, its closures are not missed, and it is in no list. What it has sent stays. `boxes add`
    opens it again."""
    with opened(settings) as store:
        if not store.register.retire(machine_of(nim), now_millis()):
            raise refusal(f"no open box {nim}")


def _millis(text: str, settings: HqSettings) -> int:
    """Milliseconds since 1970; without an offset in the configured time zone."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise refusal(f"--stolen-since: {text} is neither a date nor a moment") from None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=settings.zone)
    return round(moment.timestamp() * 1000)


@boxes.command()
@click.argument("nim")
@click.option("--ledger", help="Its id; left out, the one that the box has named last.")
@configured
def accept(settings: HqSettings, nim: str, *, ledger: str | None) -> None:
    """The box goes on with a new ledger: the one before is lost. Its closures are taken from the first on, whatever their numbers; prints
    the ledger's id. What is here of the lost one stays."""
    machine = machine_of(nim)
    with opened(settings) as store:
        latest = store.presences.latest([machine])
        if not ledger and machine not in latest:
            raise refusal(f"{nim} has not said which ledger it has; name it with --ledger")
        ledger = ledger or latest[machine].presence.ledger
        try:
            if not store.register.accept_ledger(machine, ledger, getpass.getuser(), now_millis()):
                raise refusal(f"no box {nim}")
        except ValueError as error:
            raise refusal(f"--ledger: {error}") from None
    click.echo(ledger)


@boxes.command()
@click.argument("nim")
@click.option("--label", help="What people call the shop; empty: its NIM.")
@click.option("--region", help="The group it belongs to; empty: none.")
@configured
def rename(settings: HqSettings, nim: str, **named: str | None) -> None:
    """Give a shop another name or region, its earlier closures too."""
    new = {name: text for name, text in named.items() if text is not None}
    if not new:
        raise refusal("--label or --region")
    _check_names(**new)
    with opened(settings) as store:
        if not store.register.change(machine_of(nim), now_millis(), **new):
            raise refusal(f"no box {nim}")


@boxes.command()
@click.argument("nim")
@click.argument("at", metavar="HH:MM|learn")
@configured
def closing(settings: HqSettings, nim: str, at: str) -> None:
    """When that shop has closed at the latest, in the configured time zone; `learn` goes by what it usually does."""
    match = re.fullmatch(r"([01][0-9]|2[0-3]):([0-5][0-9])", at)
    if match is None and at != "learn":
        raise refusal(f"{at} is neither a time (HH:MM) nor `learn`")
    minute = int(match[1]) * 60 + int(match[2]) if match else None
    with opened(settings) as store:
        if not store.register.change(machine_of(nim), now_millis(), closes_at=minute):
            raise refusal(f"no box {nim}")
