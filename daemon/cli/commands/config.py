"""`mcfd config`: checks or documents the configuration. `mcfd proxy`: prints the configuration of HAProxy in front."""

from pathlib import Path

import click

from common.files import secret_path
from common.language import tr
from daemon.cli.options import config_option, explained, json_option, settings_option
from daemon.cli.output import WRONG_USE, Failure, print_json
from daemon.owner import as_owner
from daemon.settings import Settings, SettingsError, check_files, load
from daemon.settings.check import hidden_files

FRONT_FOLDER = Path("/run/mcfd-front")
"""Folder of the unit front-mcfd (systemd/front-mcfd.service)."""

command = click.Group("config")


@command.command(
    "check",
    **explained(
        "Check the configuration without starting, secrets and certificates included.",
        "mcfd config check --config mcfd.toml",
    ),
)
@config_option
@json_option
def check(config: Path | None, as_json: bool) -> int:
    try:
        settings = load(config)
        check_files(settings)
        _check_contents(settings)
    except SettingsError as error:
        if not as_json:
            raise
        print_json({"ok": False, "source": error.source, "key": error.key, "problem": error.reason})
        return WRONG_USE
    nims = [machine.nim for machine in settings.machine]
    if as_json:
        print_json({"ok": True, "file": str(settings.file), "machines": nims})
    else:
        click.echo(tr("{file}: all is well ({nims})", file=settings.file, nims=", ".join(nims)))
    return 0


@command.command("doc", help=tr("Print what each key means (Markdown)."))
def doc() -> None:
    from daemon.settings.describe import render

    click.echo(render(), nl=False)


def _check_contents(settings: Settings) -> None:
    """Raises SettingsError if a file that signs, or that connections or backups are made with, is none of its kind, or
    root's alone."""
    from daemon.app.outward.replication import headquarters, webhook_receiver
    from daemon.cli.commands.backup import sealing
    from daemon.upstream.options import BadOptions, read_keys

    for key, file in hidden_files(settings):
        raise SettingsError(settings.file, key, tr("{path} cannot be read by the daemon's user", path=file))
    upstream, backup, key = settings.upstream, settings.backup, ""
    try:
        if upstream is not None:
            for name in ("secret_file", "key_file"):
                key, path = f"upstream.{name}", getattr(upstream, name)
                if path:
                    with as_owner(path.parent):
                        read_keys([secret_path(path)])
            key = ""
            headquarters(upstream)
        for number, webhook in enumerate(settings.webhook):
            webhook_receiver(number, webhook)
        if backup is not None:
            key = "backup.recipients" if backup.recipients else "backup.passphrase_file"
            sealing(settings, (), None)
    except (BadOptions, Failure) as error:
        raise SettingsError(str(settings.file), key, error) from None


@click.command("proxy")
@settings_option
def proxy(settings: Settings) -> None:
    from common.front import front_of
    from common.front_config import configuration

    server = settings.server
    try:
        front = front_of(FRONT_FOLDER, server.host, server.port, tls=server.has_tls)
    except OSError as error:
        raise SettingsError(str(settings.file), "server.host", error.strerror or str(error)) from None
    click.echo(configuration(front), nl=False)
