from __future__ import annotations

import sys
from pathlib import Path

import click

from headquarters.app.settings import HqSettings
from headquarters.cli.boxes import boxes
from headquarters.cli.nats import nats
from headquarters.cli.people import keys, users
from headquarters.cli.shared import configured
from headquarters.cli.shown import findings, refused


@click.group()
@click.version_option(package_name="mcfd")
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
    cli.main(prog_name="mcfd-hq")
