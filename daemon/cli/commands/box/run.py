from __future__ import annotations

from pathlib import Path

import click

from daemon.cli.shared import config_option, examples


@click.command(
    "run",
    epilog=examples("mcfd run --config /etc/mcfd/mcfd.toml", "MCFD_SERVER_PORT=9000 mcfd run"),
)
@config_option
def command(config: Path | None) -> int:
    from daemon import logs
    from daemon.settings import check_files, load

    settings = load(config)
    check_files(settings)
    logs.configure(settings.logs.level, settings.logs.format)
    from daemon.app.serve import serve

    return serve(settings)
