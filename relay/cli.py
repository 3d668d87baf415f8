"""Command line `mcfd-relay`."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from common.settings import SettingsError, load
from relay.settings import DEFAULT, RelaySettings


@click.group()
@click.version_option(package_name="mcfd", message="mcfd-relay %(version)s")
def cli() -> None:
    """Le relais : l'API de chaque boîtier à une seule adresse. / The relay: the API of every box at one address."""


@cli.command()
@click.option("--config", type=click.Path(path_type=Path), default=DEFAULT, show_default=True, help="TOML file.")
def run(config: Path) -> None:
    """Pass requests on to boxes; until SIGTERM."""
    from common import logs  # noqa: PLC0415  # `--help` needs no server
    from relay.serve import serve  # noqa: PLC0415  # see above

    try:
        settings = load(config, RelaySettings)
    except SettingsError as error:
        click.echo(str(error), err=True)
        sys.exit(2)
    logs.configure()
    sys.exit(serve(settings))


def main() -> None:
    cli()
