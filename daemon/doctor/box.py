"""Checks of the box: disk, clock, secrets, certificate for tills, data on paper, printer."""

import shutil
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from common.files import is_on_read_only_disk, read_file, read_secret, secret_path
from common.language import Counted, Text, tr
from common.language.reasons import from_stored
from common.language.system import reason
from common.sockets import is_loopback
from common.wire.instants import now_millis
from daemon.core.certified_core import WAITING, waiting_version
from daemon.core.errors import PrinterFailed
from daemon.doctor.wording import Check, CheckResult
from daemon.owner import as_owner
from daemon.paper.logo import NotAPicture, read_png
from daemon.paper.shop import is_cadastral
from daemon.printer import ReceiptPrinter
from daemon.settings import Settings
from daemon.settings.check import hidden_files, secret_files
from daemon.store.sqlite.disk_failure import disk_trouble, read_failures
from daemon.store.sqlite.free_space import is_grown_to
from daemon.tls import SERVER_PAIR, AuthorityError
from daemon.tls.authority import RENEWED_BEFORE, YOUNGEST_CLOCK, CertificateInfo, describe, read
from daemon.upstream.options import BadOptions, read_keys
from daemon.whole_box.sealed import read_recipient

MEGABYTE = 1024 * 1024
ROOM_FOR_YEARS = 10
"""Multiple of the reserve below which there is a warning."""
OTHERS = 0o077
NO_ISF: Final = "1"
"""The ISF of the examples, which the tax authority has issued to no one."""
PATIENCE_SECONDS: Final = 3.0
MAKE_ROOM: Final = Text(
    "make room: sudo journalctl --vacuum-size=50M, old copies in /var/lib/mcfd/backups to a stick; never the ledger"
)


def check_disk(settings: Settings) -> CheckResult:
    storage, folder = settings.storage, settings.storage.path.parent
    try:
        free = shutil.disk_usage(folder).free // MEGABYTE
        is_read_only = is_on_read_only_disk(folder)
    except OSError as error:
        return Check("disk").fail(
            "{folder}: {why}", "sudo systemd-tmpfiles --create mcfd.conf puts it back", folder=folder, why=reason(error)
        )
    with as_owner(folder):
        failures = read_failures(storage.path)
        is_grown = storage.max_size_mb is not None and is_grown_to(
            storage.path, storage.max_size_mb, storage.reserve_mb
        )
    if trouble := disk_trouble(failures, now_millis()):
        return Check("disk").fail(
            from_stored(trouble), "mcfd doctor --disk {folder} looks at the disk itself", folder=folder
        )
    if is_read_only:
        return Check("disk").fail(
            "{folder} is read-only",
            "the card or disk is wearing out: dmesg | tail, sudo mcfd backup --all FILE onto a stick, replace the medium",
            folder=folder,
        )
    if is_grown:
        return Check("disk").fail(
            "the ledger has grown to the size it may have",
            "a larger max_size_mb in [storage] ({limit} now)",
            limit=storage.max_size_mb,
        )
    return _check_room(folder, free, storage.reserve_mb)


def _check_room(folder: Path, free: int, reserve: int) -> CheckResult:
    """All in MB."""
    if free < reserve:
        return Check("disk").fail(
            "{free} MB free in {folder}, less than the reserve ({reserve} MB): certifications are refused",
            MAKE_ROOM,
            folder=folder,
            free=free,
            reserve=reserve,
        )
    if free < ROOM_FOR_YEARS * reserve:
        return Check("disk").warn("only {free} MB left in {folder}", MAKE_ROOM, folder=folder, free=free)
    return Check("disk").ok("{free} MB free in {folder}", folder=folder, free=free)


def check_box_clock(now: datetime | None = None) -> CheckResult:
    now = now or datetime.now(UTC)
    moment = f"{now:%Y-%m-%d %H:%M} UTC"
    if now < YOUNGEST_CLOCK:
        return Check("box_clock").fail(
            "the box takes it to be {now}",
            "sudo timedatectl set-ntp true, or without internet: sudo timedatectl set-time 'YYYY-MM-DD hh:mm'",
            now=moment,
        )
    return Check("box_clock").ok("it is {now}", now=moment)


def check_certificate(settings: Settings, now: datetime | None = None) -> CheckResult:
    server = settings.server
    if not (server.tls or server.tls_cert):
        if is_loopback(server.host):
            return Check("certificate").ok("not needed: this box alone")
        return Check("certificate").warn(
            "{host} in clear: keys cross the network in clear",
            'sudo mcfd tls init, then tls = "internal" in [server]',
            host=server.host,
        )
    file = server.tls_cert or settings.tls_home / SERVER_PAIR
    try:
        found = describe(read(file))
    except AuthorityError as error:
        if server.tls_cert:
            return Check("certificate").fail(error, "correct tls_cert in [server]")
        return Check("certificate").fail(
            error,
            "a new box: sudo mcfd tls init; else the authority that tills trust is in the backup: sudo mcfd restore --all --keep-newer FILE",
        )
    return _dated(found, now or datetime.now(UTC), internal=bool(server.tls))


def _dated(found: CertificateInfo, now: datetime, *, internal: bool) -> CheckResult:
    days = (found.until - now).days
    summary = Counted(
        "until {until} ({count} day) for {names}",
        "until {until} ({count} days) for {names}",
        days,
        until=f"{found.until:%Y-%m-%d}",
        names=", ".join(found.names),
    )
    todo = (
        Text("the daemon renews it at its start: sudo systemctl restart mcfd")
        if internal
        else Text("have it renewed, replace both files, sudo systemctl reload mcfd")
    )
    if not found.since <= now < found.until:
        return Check("certificate").fail(summary, todo)
    # The internal one is renewed a month before its end; a box that was off has a few days more.
    if now > found.until - (RENEWED_BEFORE * 0.8 if internal else RENEWED_BEFORE):
        return Check("certificate").warn(summary, todo)
    return Check("certificate").ok(summary)


def check_secrets(settings: Settings) -> Iterator[CheckResult]:
    """Secrets must be readable by their owner only, and by the daemon; signing secrets must be keys."""
    check = Check("secrets")
    found = [
        check.fail(
            "{file} ({key}) cannot be read by the daemon's user",
            "put it into /etc/mcfd/credentials and set {key} to that; then sudo systemctl restart mcfd",
            file=file,
            key=at,
        )
        for at, file in hidden_files(settings)
    ]
    for at, path in secret_files(settings):
        file = secret_path(path)
        if file.stat().st_mode & OTHERS:
            found.append(check.warn("{file} ({key}) can be read by others", "sudo chmod 600 {file}", file=file, key=at))
    upstream = settings.upstream
    if upstream is not None:
        try:
            for path in filter(None, (upstream.secret_file, upstream.key_file)):
                with as_owner(path.parent):
                    read_keys([secret_path(path)])
        except BadOptions as error:
            todo = Text("put back the secret that headquarters gave (one line whsec_…), or mcfd upstream keygen")
            found.append(check.fail(error, todo))
    found += _check_backup_keys(settings)
    yield from found or [check.ok("readable by their owner alone")]


def _check_backup_keys(settings: Settings) -> Iterator[CheckResult]:
    """What `[backup]` seals with; without it each backup of the whole box fails."""
    backup, check = settings.backup, Check("secrets")
    if backup is None:
        return
    todo = Text("correct [backup]: mcfd backup --new-key makes a key; then mcfd config check")
    for recipient in backup.recipients:
        try:
            read_recipient(recipient)
        except ValueError:
            yield check.fail("{value} is not a public key of age (age1…)", todo, value=recipient)
    if backup.passphrase_file:
        file = secret_path(backup.passphrase_file)
        try:
            read_secret(backup.passphrase_file)
        except OSError as error:
            yield check.fail("{path} cannot be read: {why}", todo, path=file, why=reason(error))


def check_isf(settings: Settings) -> Iterator[CheckResult]:
    """For the tax authority an invented ISF on real invoices is a fault."""
    for machine in settings.machine:
        if machine.enabled and machine.isf == NO_ISF:
            yield Check("isf", machine.nim).warn(
                "the ISF is {isf}, which is only an example",
                "set isf in [[machine]] to the one that the tax authority gave the till software",
                isf=machine.isf,
            )


def check_homologation(settings: Settings, running: str) -> Iterator[CheckResult]:
    """`running`: the running core's digest. A changed core needs a new homologation (arrêté 2025-0047, art. 10, 11)."""
    approved = settings.homologation.core_digest
    if approved is None:
        return
    if approved == running:
        yield Check("homologation").ok("the certified core that runs is the one that was approved")
    else:
        yield Check("homologation").warn(
            "the certified core that runs ({running}) is not the one that was approved",
            "have this version homologated, and set core_digest in [homologation]; or go back to the approved version",
            running=running[:12],
        )


def check_upgrade(settings: Settings, note: Path = WAITING) -> Iterator[CheckResult]:
    """A version that upgrade-mcfd.service has not installed, since its certified core differs."""
    waiting = waiting_version(note)
    if not waiting:
        return
    found = Text("version {version} is there; its certified core is another one than that which runs", version=waiting)
    if settings.homologation.core_digest:
        todo = Text("sudo mcfd upgrade --core, once this version has been homologated")
    else:
        todo = Text("sudo mcfd upgrade --core, when the shop is closed")
    yield Check("upgrade").warn(found, todo)


def check_company(settings: Settings) -> Iterator[CheckResult]:
    """Data that the law requires on an invoice and only the shop has (SFE 2.0, section 3)."""
    company = settings.company
    wanted = (
        ("cadastral", company.cadastral, tr("the cadastral reference")),
        ("regime", company.regime, tr("the tax regime")),
        ("tax_office", company.tax_office, tr("the tax office")),
    )
    if missing := [(name, words) for name, value, words in wanted if not value]:
        names, words = (", ".join(column) for column in zip(*missing, strict=True))
        yield Check("company").warn(
            "invoices are printed without {missing}",
            "if mcfd prints your invoices, set in [company]: {names}",
            missing=words,
            names=names,
        )
    is_odd = bool(company.cadastral) and not is_cadastral(company.cadastral)
    if is_odd:
        yield Check("company").warn(
            "{reference!r} is no cadastral reference (section, block, plot)",
            "set cadastral in [company] as 1234 056 0078: four, three and four characters",
            reference=company.cadastral,
        )
    if not missing and not is_odd:
        yield Check("company").ok("everything that stands on an invoice is there")


def check_logo(settings: Settings) -> Iterator[CheckResult]:
    if (path := settings.company.logo) is None:
        return
    todo = Text("a PNG that the daemon's user may read: logo in [company]")
    try:
        with as_owner(settings.storage.path.parent):
            picture = read_png(read_file(path))
    except OSError as error:
        yield Check("logo").warn("{path} cannot be read: {why}", todo, path=path, why=reason(error))
    except NotAPicture as error:
        yield Check("logo").warn("{path} cannot be printed: {why}", todo, path=path, why=error)
    else:
        size = f"{picture.width} × {picture.height}"
        yield Check("logo").ok("{path} can be printed ({size})", path=path, size=size)


async def check_printer(settings: Settings) -> list[CheckResult]:
    """Queries the printer's state; prints nothing."""
    printer = settings.printer
    if printer is None:
        return []
    try:
        await ReceiptPrinter(printer.address, min(printer.timeout, PATIENCE_SECONDS)).check()
    except PrinterFailed as error:
        return [Check("printer").fail(error, "paper in, cover closed, switched on? its address: address in [printer]")]
    return [Check("printer").ok("{address} answers", address=printer.address)]
