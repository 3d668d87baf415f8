from __future__ import annotations

import platform

import click

from daemon.cli.options import json_option
from daemon.cli.output import print_json


@click.command("version")
@json_option
def command(as_json: bool) -> None:
    from importlib.metadata import version

    from daemon.core.certified_core import CORE_VERSION, core_digest

    core = {"version": CORE_VERSION, "digest": core_digest()}
    versions = {"mcfd": version("mcfd"), "python": platform.python_version(), "system": platform.platform()}
    if as_json:
        print_json({**versions, "core": core})
    else:
        click.echo(
            "\n".join(f"{name} {value}" for name, value in {**versions, "core": " ".join(core.values())}.items())
        )
