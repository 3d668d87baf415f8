"""`mcfd archive`: a closed year of each machine as one signed file that can be checked without mcfd."""

from collections.abc import Iterable, Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any, BinaryIO

import click

from common.files import replacing
from common.language import tr
from common.wire.instants import now_millis
from daemon.cli.options import examples, folder_option, json_option, settings_option
from daemon.cli.output import Failure, clean_up_when_stopped, print_json, say, writing
from daemon.core.certified_core import CORE_VERSION, core_digest
from daemon.core.clock import millis_text
from daemon.core.machine.state import same_machine
from daemon.ledger_access import change, existing, reading
from daemon.operations import NoteAction
from daemon.owner import as_owner, by_owner
from daemon.settings import Settings
from daemon.store.maintenance import year_lines
from daemon.store.maintenance.year_lines import ArchiveYear, closed_years
from daemon.whole_box.signature import BoxKey, NoKey, key_file, own_key
from daemon.whole_box.year_archive import archive_name, faults, write_archive

Lines = Iterable[dict[str, Any]]


@click.command("archive", epilog=examples("mcfd archive 2026 --into /media/usb"))
@settings_option
@click.argument("year", type=click.IntRange(2000, 9999), metavar=tr("YEAR"))
@folder_option("--into", text=tr("The directory to put it in."), required=True)
@click.option("--nim", default="", metavar="NIM", help=tr("Of this machine alone."))
@json_option
def command(settings: Settings, *, year: int, into: Path, nim: str, as_json: bool) -> None:
    clean_up_when_stopped()
    archives, there = archive_years(settings, into, year=str(year), nim=nim)
    if not archives and not there:
        raise Failure("{year} is not closed: a year is closed with the first Z or certification after it", year=year)
    if as_json:
        print_json({"archives": [str(path) for path in archives], "there": [str(path) for path in there]})
        return
    for path in archives:
        say("verified archive: {path}", path=path)
    for path in there:
        say("{path} exists already", path=path)


def archive_years(settings: Settings, into: Path, *, year: str = "", nim: str = "") -> tuple[list[Path], list[Path]]:
    """Archives each closed year, or `year`, that has no archive yet. Returns the new files and the existing ones."""
    ledger = existing(settings)
    archives, there = [], []
    with reading(ledger) as connection:
        connection.execute("BEGIN")
        years = [
            each
            for each in closed_years(connection)
            if year in ("", each.year) and (not nim or same_machine(each.book.nim, nim))
        ]
    for each in years:
        target = into / archive_name(each.book.nim, each.ifu, each.year, each.number)
        with as_owner(into):
            into.mkdir(parents=True, exist_ok=True)
            is_there = target.exists()
        if is_there:
            there.append(target)
            continue
        _make(settings, ledger, target, each)
        archives.append(target)
        change(settings, NoteAction("archive.made", str(target), {"year": each.year}))
    return archives, there


def _make(settings: Settings, ledger: Path, target: Path, year: ArchiveYear) -> None:
    """Leaves a verified archive or none."""
    with writing(target):
        key = signing_key(settings)
        with (
            by_owner(target, ledger.parent) as copy,
            as_owner(ledger.parent),
            replacing(copy, 0o600, is_new=True) as file,
        ):
            _write(ledger, file, copy, year, key)
            if found := faults(file):
                raise Failure("the archive does not verify: {found}", found="; ".join(found[:3]))


def _write(ledger: Path, file: BinaryIO, target: Path, year: ArchiveYear, key: BoxKey) -> None:
    counts = dict.fromkeys(("certification", "closure", "entry", "lost"), 0)

    def counted(lines: Lines) -> Iterator[dict[str, Any]]:
        for line in lines:
            counts[line["kind"]] += 1
            yield line

    def manifest() -> dict[str, Any]:
        chain = {"start": year.start.hex(), "after_z": year.after_z, "end": year.end.hash.hex(), "counts": counts}
        chain["is_unsure"] = year_lines.is_unsure(connection, year)
        identity = {"nim": year.book.nim, "ifu": year.ifu, "year": year.year, "number": year.number, "chain": chain}
        core = f"{CORE_VERSION} {core_digest()}"
        return {**identity, "made_at": millis_text(now_millis()), "version": version("mcfd"), "core": core}

    with reading(ledger) as connection:
        connection.execute("BEGIN")
        parts: dict[str, Lines] = {
            "chain.jsonl.gz": counted(year_lines.chain_lines(connection, year)),
            **{f"{name}.jsonl.gz": year_lines.plain_lines(connection, name, year) for name in year_lines.PLAIN},
        }
        write_archive(file, target, key, parts, manifest)


def signing_key(settings: Settings) -> BoxKey:
    ledger = settings.storage.path
    try:
        return own_key(ledger)
    except NoKey:
        raise Failure("{path} holds no key; once it is deleted a new one is made", path=key_file(ledger)) from None
