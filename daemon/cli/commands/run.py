import gc
import os
import pwd
from pathlib import Path

import click

from common.language import tr
from daemon.cli.options import config_option, examples
from daemon.cli.output import Failure
from daemon.unneeded import later, without

OTHERS = ("rich", "pygments", "greenlet", "annotated_types")
"""Of other programs in this environment, or for coloured tracebacks; structlog and Litestar load them if present."""
UNUSED = ("yaml",)
"""Litestar imports it for a document that is never made here."""


@click.command(
    "run",
    epilog=examples("mcfd run --config /etc/mcfd/mcfd.toml", "MCFD_SERVER_PORT=9000 mcfd run"),
)
@config_option
@click.option(
    "--front",
    envvar="FRONT_FOLDER",  # set by the unit, which may start an older program: that has no such option and ignores it
    type=click.Path(path_type=Path, file_okay=False),
    metavar=tr("FOLDER"),
    help=tr("Folder shared with HAProxy's own unit; left out, HAProxy is started by mcfd where it is needed."),
)
def command(config: Path | None, front: Path | None) -> int:
    gc.disable()  # until the start is over (`serve`): nearly all objects of a start stay
    try:
        return _run(config, front)
    finally:
        gc.enable()


def _run(config: Path | None, front: Path | None) -> int:
    with without(*OTHERS):
        from common import logs
    from daemon.settings import check_files, load

    settings = load(config)
    _not_in_anothers_stead(settings.storage.path.parent)
    check_files(settings)
    logs.configure(settings.logs.level, settings.logs.format)
    later(*UNUSED)
    with without(*OTHERS):
        from daemon.app.serve import serve

    return serve(settings, front)


def _not_in_anothers_stead(folder: Path) -> None:
    """Refuses root in a folder of the daemon's user: that user may have put anything there, and could not read the
    files that root's daemon makes."""
    if os.geteuid() != 0 or not folder.exists() or (owner := folder.stat().st_uid) == 0:
        return
    try:
        name = pwd.getpwuid(owner).pw_name
    except KeyError:
        name = f"#{owner}"
    raise Failure(
        "{folder} belongs to {user}: sudo systemctl start mcfd, or sudo -u {user} mcfd run",
        folder=folder,
        user=name,
    )
