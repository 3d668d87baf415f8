import contextlib

import click

from common.language import Counted, sentence, tr
from daemon.cli.options import examples, json_option, progress_option, settings_option
from daemon.cli.output import FOUND_WRONG, Progress, complain, counts, figures, print_json, say
from daemon.core.errors import LedgerUnusable, StorageError
from daemon.ledger_access import change, existing, read_ledger
from daemon.operations import NoteVerified
from daemon.owner import as_owner
from daemon.settings import Settings
from daemon.store.maintenance.verify import VerifyResult, verify
from daemon.store.tables.book.books import all_books


@click.command("verify", epilog=examples("mcfd verify", "mcfd verify --json"))
@settings_option
@json_option
@progress_option
def command(settings: Settings, as_json: bool, for_program: bool) -> int:
    path = existing(settings)
    _bring_up_to_date(settings)
    nims = [machine.nim for machine in settings.machine if machine.enabled]
    try:
        with as_owner(path.parent), Progress(for_program=for_program) as progress:
            findings = verify(path, progress, machines=nims)
    except LedgerUnusable as error:
        findings = VerifyResult((tr(sentence(error)),), 0, 0, 0)
    else:
        _note(settings, findings)
    if as_json:
        print_json({"ok": findings.clean, "ledger": str(path), **figures(findings)})
        return 0 if findings.clean else FOUND_WRONG
    for note in findings.notes:
        say(note)
    if findings.clean:
        say(
            "{path}: all is right ({books}, {records}, {closures})",
            path=path,
            books=Counted("{count} book", "{count} books", findings.books),
            **counts(findings),
        )
    else:
        for problem in findings.problems:
            complain(problem)
        problems = len(findings.problems)
        complain(Counted("{path}: {count} problem", "{path}: {count} problems", problems, path=path))
    return 0 if findings.clean else FOUND_WRONG


def _bring_up_to_date(settings: Settings) -> None:
    """Migrates a ledger of an older version, as the next start would; `verify` reports its faults."""
    with contextlib.suppress(StorageError):
        read_ledger(settings, lambda store: store.ledger.read(all_books))


def _note(settings: Settings, findings: VerifyResult) -> None:
    """Stores the result for the daemon and `GET /metrics`; if that fails, the result is still shown."""
    with contextlib.suppress(StorageError):
        change(settings, NoteVerified(findings.damage.file, findings.damage.entries))
