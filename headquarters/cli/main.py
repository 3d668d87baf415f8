"""Commands of `mcfd-hq`."""

import errno
import os
import sys
from pathlib import Path

import click

from common.wire.instants import instant_text
from headquarters.app.settings import HqSettings
from headquarters.cli.boxes import boxes
from headquarters.cli.nats import nats
from headquarters.cli.people import keys, users
from headquarters.cli.shared import EXIT_UNAVAILABLE, configured, opened, print_row
from headquarters.core.wording import KIND, sentence


@click.command()
@click.option("--all", "everything", is_flag=True, help="Also what is solved.")
@configured
def findings(settings: HqSettings, everything: bool) -> None:
    """What is not as it has to be, newest first."""
    language = settings.reports.language
    with opened(settings) as store:
        for one in store.findings.listed(is_open=None if everything else True):
            words = (KIND[one.kind].in_language(language), one.nim, sentence(one.kind, one.facts, language))
            solved = f"✓ {one.solved_by or instant_text(one.solved_at)}" if one.solved_at is not None else ""
            print_row(one.id, instant_text(one.found_at), *words, solved)


@click.command()
@configured
def refused(settings: HqSettings) -> None:
    """What came and was not taken: how many by day, and the newest samples."""
    with opened(settings) as store:
        for count in store.evidence.counted("2020-01-01"):
            print_row(count.day, count.via, count.reason, count.count)
        for sample in store.evidence.samples(20):
            print_row(instant_text(sample.at), sample.via, sample.reason, sample.nim, sample.detail)


@click.group()
@click.version_option(package_name="mcfd", message="mcfd-hq %(version)s")
def cli() -> None:
    """Le siège : reçoit les clôtures des boîtiers. / Headquarters: receives the closures of many boxes."""


@cli.command()
@click.option(
    "--front", type=click.Path(path_type=Path, file_okay=False), help="Folder shared with HAProxy's own unit."
)
@configured
def run(settings: HqSettings, front: Path | None) -> None:
    """Receive, check, keep, show; until SIGTERM."""
    from common import logs  # noqa: PLC0415  # the other commands need no server
    from headquarters.app.serve import serve  # noqa: PLC0415  # see above

    logs.configure()
    sys.exit(serve(settings, front))


for command in (boxes, users, keys, nats, findings, refused):
    cli.add_command(command)


def main() -> None:
    try:
        cli.main(prog_name="mcfd-hq")
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise
        click.echo(f"Error: the output is incomplete: {error.strerror}", err=True)
        sys.stdout = Path(os.devnull).open("w")  # noqa: SIM115  # what the old one still has would fail again at the exit
        sys.exit(EXIT_UNAVAILABLE)
