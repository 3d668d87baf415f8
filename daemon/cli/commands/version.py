"""`mcfd version` and `mcfd upgrade`."""

import os
import platform
from importlib.metadata import version
from pathlib import Path

import click

from common.language import tr
from daemon.cli.options import explained, json_option
from daemon.cli.output import Failure, print_json
from daemon.core.certified_core import CORE_VERSION, core_digest

SCRIPT = Path("/usr/share/mcfd/upgrade")
SOURCES = Path("/etc/apt/sources.list.d/mcfd.sources")
QUIET_SECONDS = "10"
"""Seconds without a sale, since a person waits; the timer's job waits five minutes."""


@click.command("version")
@json_option
def command(as_json: bool) -> None:

    core = {"version": CORE_VERSION, "digest": core_digest()}
    versions = {"mcfd": version("mcfd"), "python": platform.python_version(), "system": platform.platform()}
    if as_json:
        print_json({**versions, "core": core})
        return
    for name, value in {**versions, "core": " ".join(core.values())}.items():
        click.echo(f"{name} {value}")


@click.command(
    "upgrade",
    **explained(
        "Take the newest version of mcfd's own repository now, while no till sells. By itself the box does so at night.",
        "sudo mcfd upgrade",
        "sudo mcfd upgrade --core",
    ),
)
@click.option(
    "--core",
    is_flag=True,
    help=tr(
        "Also a version whose certified core is another one: where the SFE was homologated, it has to be homologated again."
    ),
)
def upgrade(core: bool) -> None:
    if not SCRIPT.is_file():
        raise Failure("mcfd was not installed from a package")
    if not SOURCES.is_file():
        raise Failure(
            "no repository of mcfd is configured ({sources}); sudo apt install ./mcfd_VERSION.deb", sources=SOURCES
        )
    os.environ.setdefault("MCFD_UPGRADE_QUIET_SECONDS", QUIET_SECONDS)
    os.execv(SCRIPT, [str(SCRIPT), *(["--core"] if core else [])])  # noqa: S606  the package's own script
