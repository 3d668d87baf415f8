"""What `mcfd setup` shows: for people, for scripts, and as a QR code for a till's camera."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from daemon.cli.commands.machine.machine import print_pairs, reading_pairs
from daemon.cli.ledger import now
from daemon.cli.output import print_table, say, warn
from daemon.core.clock import drift_seconds
from daemon.language import tr
from daemon.language.stored import stored
from daemon.machines.port_reading import PortReading, Silence
from daemon.setup.kept import differences

if TYPE_CHECKING:
    from daemon.setup.search import Asked

DRIFT_SECONDS = 120


@dataclass(frozen=True)
class Done:
    """One machine that is set up, and what its tills need."""

    asked: Asked
    address: str
    key: str
    still_valid: tuple[str, ...] = ()
    """Keys of before, as id and label."""


class Login(NamedTuple):
    """The first person of the shop's page."""

    name: str
    password: str
    """that was made"""


@dataclass(frozen=True)
class Made:
    """The configuration, the one before it, the authority's certificate, and who may log in; what was not made is None."""

    config: Path | None = None
    kept: Path | None = None
    root: Path | None = None
    login: Login | None = None


def show_ports(asked: Sequence[Asked]) -> None:
    print_table((tr("PORT"), tr("STATE")), [(each.port, _outcome(each)) for each in asked])


def _outcome(asked: Asked) -> str:
    if isinstance(asked.found, PortReading):
        return tr("machine {nim}", nim=asked.nim)
    if asked.found.why == "silent":
        return tr("nobody answers")
    return (
        tr("something answers, but not as a fiscal machine")
        if asked.found.why == "stranger"
        else tr(stored(asked.found.reason))
    )


def show_machines(chosen: Sequence[Asked]) -> None:
    for each in chosen:
        if isinstance(each.found, PortReading):
            click.echo()
            print_pairs([*reading_pairs(each.nim, each.found), (tr("PORT"), each.port)])
            seconds = drift_seconds(each.found.read_at or now(), each.found.state.time)
            if seconds is not None and abs(seconds) > DRIFT_SECONDS:
                warn(tr("the box's clock is {seconds} s off the machine's: set it (timedatectl)", seconds=abs(seconds)))
    click.echo()


def show_changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> None:
    """What a configuration that is replaced says otherwise from now on; everything else stays."""
    for path, was, now_is in differences(dict(before), dict(after)):
        say(
            tr(
                "{path}: {was} → {now_is}",
                path=path,
                was="–" if was is None else was,
                now_is="–" if now_is is None else now_is,
            )
        )


def show_end(made: Made, done: Sequence[Done]) -> None:
    pairs: list[tuple[object, object]] = [(tr("CONFIGURATION"), made.config)]
    if made.kept:
        pairs.append((tr("THE OLD ONE"), made.kept))
    if made.root:
        pairs.append(
            (tr("CERTIFICATE"), tr("{path}, to be installed on the tills (mcfd tls export-ca)", path=made.root))
        )
    for each in done:
        pairs.append((tr("ADDRESS"), f"{each.address}/v1/mcf/{each.asked.nim}"))
        if each.key:
            pairs.append((tr("KEY"), each.key))
    if login := made.login:
        pairs += [(tr("PAGE"), f"{done[0].address}/ui/"), (tr("PERSON"), login.name), (tr("PASSWORD"), login.password)]
    print_pairs(pairs)
    _show_codes(done)
    if old := [key for each in done for key in each.still_valid]:
        say(tr("keys of before that stay valid: {keys} (mcfd keys revoke ID)", keys=", ".join(old)))
    if any(each.key for each in done):
        say(tr("the key is shown this once only"))
    if login:
        say(tr("the password too; another one: mcfd users passwd {name}", name=login.name))
    say(tr("next: sudo systemctl restart mcfd, then mcfd doctor"))


def _show_codes(done: Sequence[Done]) -> None:
    """One at a time, each with the name of its machine: a camera that sees two takes the wrong one."""
    scanned = [each for each in done if each.key and sys.stdout.isatty()]
    for number, each in enumerate(scanned, 1):
        say(tr("QR code of {nim} ({number} of {count})", nim=each.asked.nim, number=number, count=len(scanned)))
        _print_qr(each)
        if number < len(scanned) and sys.stdin.isatty():
            click.pause(tr("the next one: any key"))


def _print_qr(done: Done) -> None:
    """What a till scans instead of typing: address, NIM and key."""
    import msgspec
    import segno

    text = msgspec.json.encode({"url": done.address, "nim": done.asked.nim, "key": done.key}).decode()
    compact = (sys.stdout.encoding or "").lower().startswith("utf")  # half blocks, where the terminal knows them
    segno.make(text, error="l", micro=False).terminal(sys.stdout, compact=compact)


def told(made: Made, asked: Sequence[Asked], done: Sequence[Done]) -> dict[str, object]:
    login = made.login
    return {
        "config": str(made.config) if made.config else None,
        "kept": str(made.kept) if made.kept else None,
        "certificate": str(made.root) if made.root else None,
        "ports": [_port(each) for each in asked],
        "machines": [_machine(each) for each in done],
        "person": {"name": login.name, "password": login.password} if login else None,
    }


def _port(asked: Asked) -> dict[str, object]:
    if isinstance(asked.found, Silence):
        return {"port": str(asked.port), "nim": None, "why": asked.found.why, "reason": asked.found.reason}
    return {"port": str(asked.port), "nim": asked.nim, "why": None, "reason": None}


def _machine(done: Done) -> dict[str, object]:
    found = done.asked.found
    state = found.state if isinstance(found, PortReading) else None
    return {
        "nim": done.asked.nim,
        "ifu": state.ifu if state else None,
        "trade_name": found.taxpayer[0] if isinstance(found, PortReading) else None,
        "port": str(done.asked.port),
        "address": done.address,
        "key": done.key or None,
    }
