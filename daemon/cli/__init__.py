"""The command `mcfd`: one module for each command, imported on demand.

Exit codes, the same everywhere:

    0    done, and all is well
    1    done, and something was found wrong or refused
    2    the command line or the configuration is wrong
    3    it cannot be done now: there is no ledger, or it is damaged, full or in use by another program
    74   only `mcfd run`: the disk failed (daemon/app/serve.py)
    130  interrupted at the keyboard
"""

import os
import signal
import sys
from pathlib import Path

import click

from common.language import ambient, tr, translate
from common.language.system import reason
from daemon.cli.groups import LazyGroup, Member, install
from daemon.cli.output import FOUND_WRONG, INTERRUPTED, NO_ROOM, UNAVAILABLE, WRONG_USE, Stopped, complain
from daemon.core.errors import InvalidRequest, McfdError, StorageError

COMMANDS = {
    "setup": Member(
        "Set this box up. Asks every serial port whether a machine answers (only reading), shows what was found, writes the configuration, makes the first key and shows it once, with the address and a QR code."
    ),
    "doctor": Member(
        "Look at everything that goes wrong in the field, and say for each what to do. Exit 1 when something is wrong."
    ),
    "run": Member(
        "Run the daemon. In the foreground, log on stderr; SIGTERM finishes what is on the line and stops it."
    ),
    "keys": Member("Manage API keys."),
    "users": Member("Manage the people who log in to the shop's page."),
    "audit": Member(
        "Show who did what to the box, and check that this log is whole. Exit 1 when it is not.", "users", "audit"
    ),
    "machine": Member("Look at the machines; settle what needs a decision."),
    "time": Member("The clocks of box and machine, and the time of the ledger.", "clock"),
    "report": Member("Show X, Z and A as they would be printed; nothing is closed."),
    "poster": Member("The sign that the law wants at each till, as a PDF to print and hang up.", "report", "poster"),
    "homologation": Member("The dossier of homologation in French, and its test cases on the connected machine."),
    "journal": Member(
        "The electronic journal, newest first: every attempt to certify, what became of it, and the cash that was moved."
    ),
    "logs": Member("What the daemon has written to the system's journal, one readable line each."),
    "verify": Member("Verify the ledger: integrity, chain, totals, sequence of Z. Exit 1 when something is wrong."),
    "backup": Member("Copy the ledger, also while the daemon runs, and verify the copy."),
    "archive": Member("A closed year as one signed file, which can be checked for ten years without mcfd."),
    "restore": Member(
        "Put a copy back in the ledger's place (daemon stopped). It is compared with the machine at the next start."
    ),
    "upstream": Member("Look at closures on their way to headquarters, send them again."),
    "webhook": Member("Test the webhooks that events are sent to.", "upstream", "webhook"),
    "tls": Member("HTTPS by an authority of the box's own."),
    "proxy": Member("Print HAProxy's configuration as it is written where HAProxy is in front.", "config", "proxy"),
    "config": Member("Check or document the configuration."),
    "upgrade": Member(
        "Take a new version now; one with another certified core only with --core.", "version", "upgrade"
    ),
    "version": Member("Show the versions."),
}
"""In the order of `mcfd --help`."""


install()  # before click first looks up its own texts

root = click.version_option(package_name="mcfd", message="mcfd %(version)s", help=tr("Show the versions."))(
    LazyGroup(
        "mcfd",
        COMMANDS,
        help=tr("The daemon beside the fiscal machine (MCF): every invoice certified exactly once."),
        epilog=tr(
            "Exit codes: 0 all is well; 1 something is wrong or was refused; 2 wrong command line or "
            "configuration; 3 not possible now (no ledger, or it is damaged or busy; a full disk)."
        ),
    )
)


def main() -> int:
    """Runs this process's command line; returns the exit code."""
    _open_closed_streams()
    try:
        return int(root.main(prog_name="mcfd", standalone_mode=False) or 0)
    except Stopped:
        os.kill(os.getpid(), signal.SIGTERM)
        raise
    except (click.ClickException, click.Abort, KeyboardInterrupt, McfdError) as error:
        return _report_error(error)
    except OSError as error:
        if error.errno not in NO_ROOM:
            raise
        complain("the output is incomplete: {why}", why=reason(error))
        sys.stdout = Path(os.devnull).open("w")  # noqa: SIM115  # what the old one still has would fail again at the exit
        return UNAVAILABLE
    except Exception as error:
        from common.settings import SettingsError  # loaded already if it was raised; other commands do without

        if not isinstance(error, SettingsError):
            raise
        complain(str(error))
        return WRONG_USE


def _open_closed_streams() -> None:
    """A stream with which the process was started closed is None to Python, and its file number would be the next file's."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open(mode))  # noqa: SIM115  # as long as the process


def _report_error(error: BaseException) -> int:
    """Prints the error as one line on stderr; returns its exit code."""
    if isinstance(error, click.exceptions.NoArgsIsHelpError):
        click.echo(error.format_message(), err=True)
        return WRONG_USE
    if isinstance(error, click.UsageError):
        if error.ctx is not None:
            click.echo(error.ctx.get_usage(), err=True)
        complain(error.format_message())
        return WRONG_USE
    if isinstance(error, click.ClickException):
        complain(error.format_message())
        return error.exit_code
    if isinstance(error, (click.Abort, KeyboardInterrupt)):
        complain("broken off")
        return INTERRUPTED
    if isinstance(error, InvalidRequest):
        faults = (tr("{name}: {found}", name=each.field, found=each.message) for each in error.errors)
        complain("; ".join(faults))
        return WRONG_USE
    complain(str(translate(error, ambient())))
    return UNAVAILABLE if isinstance(error, StorageError) else FOUND_WRONG
