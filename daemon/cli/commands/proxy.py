from __future__ import annotations

from pathlib import Path

import click

from daemon.cli.options import settings_option
from daemon.settings import Settings

FOLDER = Path("/run/mcfd-front")
"""Of the unit front-mcfd (systemd/front-mcfd.service)."""


@click.command("proxy")
@settings_option
def command(settings: Settings) -> None:
    from common.front import front_of
    from common.front_config import configuration

    server = settings.server
    click.echo(configuration(front_of(FOLDER, server.host, server.port, tls=server.has_tls)), nl=False)
