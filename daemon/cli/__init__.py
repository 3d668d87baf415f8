"""The command `mcfd`: one module for each command, imported when it is called, so that each starts fast.

Exit codes, the same everywhere:

    0    done, and all is well
    1    done, and something was found wrong or refused
    2    the command line or the configuration is wrong
    3    it cannot be done now: no ledger, or it is damaged, full or held by another program
    130  broken off at the keyboard
"""

from __future__ import annotations

import os
import sys
from importlib import import_module

import click

from daemon.cli.click_texts import install
from daemon.cli.shared import FOUND_WRONG, INTERRUPTED, UNAVAILABLE, WRONG_USE, complain
from daemon.core.errors import McfdError, StorageError
from daemon.language import tr
from daemon.settings.errors import SettingsError

COMMANDS = {
    "setup": "daemon.cli.commands.box.setup",
    "doctor": "daemon.cli.commands.box.doctor",
    "run": "daemon.cli.commands.box.run",
    "keys": "daemon.cli.commands.access.keys",
    "users": "daemon.cli.commands.access.users",
    "audit": "daemon.cli.commands.access.audit",
    "machine": "daemon.cli.commands.machine.machine",
    "time": "daemon.cli.commands.machine.clock",
    "report": "daemon.cli.commands.records.report",
    "journal": "daemon.cli.commands.records.journal",
    "logs": "daemon.cli.commands.box.logs",
    "verify": "daemon.cli.commands.records.verify",
    "backup": "daemon.cli.commands.records.backup",
    "restore": "daemon.cli.commands.records.restore",
    "upstream": "daemon.cli.commands.records.upstream",
    "webhook": "daemon.cli.commands.records.webhook",
    "tls": "daemon.cli.commands.box.tls",
    "config": "daemon.cli.commands.box.config",
    "version": "daemon.cli.commands.box.version",
}
"""Name → module, whose `command` it is; in the order in which `mcfd --help` lists them."""


class Commands(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002  click's own signature
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002  as above
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = import_module(COMMANDS[cmd_name]).command
        if isinstance(command, click.Group):
            command.subcommand_metavar = tr("COMMAND [ARGS]...")
        return command


install()  # before anything asks click for its words

root = click.version_option(package_name="mcfd", message="mcfd %(version)s", help=tr("Show the versions."))(
    Commands(
        "mcfd",
        subcommand_metavar=tr("COMMAND [ARGS]..."),
        help=tr("The daemon beside the fiscal machine (MCF): every invoice certified exactly once."),
        epilog=tr(
            "Exit codes: 0 all is well; 1 something is wrong or was refused; 2 wrong command line or "
            "configuration; 3 not possible now (no ledger, or it is damaged, full or busy)."
        ),
    )
)


def main() -> int:
    """Runs the command line of this process; its exit code."""
    try:
        return int(root.main(prog_name="mcfd", standalone_mode=False) or 0)
    except (click.ClickException, click.Abort, KeyboardInterrupt, SettingsError, McfdError) as error:
        return _tell(error)
    except BrokenPipeError:  # `mcfd keys list | head`: who read it has enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


def _tell(error: BaseException) -> int:
    """What stopped the command, in one line on stderr, and the exit code for it."""
    if isinstance(error, click.UsageError):
        if error.ctx is not None:
            click.echo(error.ctx.get_usage(), err=True)
        complain(error.format_message())
        return WRONG_USE
    if isinstance(error, click.ClickException):
        complain(error.format_message())
        return error.exit_code
    if isinstance(error, (click.Abort, KeyboardInterrupt)):
        complain(tr("broken off"))
        return INTERRUPTED
    complain(str(error))
    if isinstance(error, SettingsError):
        return WRONG_USE
    return UNAVAILABLE if isinstance(error, StorageError) else FOUND_WRONG
