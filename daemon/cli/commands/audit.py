"""`mcfd audit`: what was done to the box, by whom and from where; and whether this log is intact."""

from __future__ import annotations

import click

from common.language import Speaker, ambient, tr
from daemon.cli.options import examples, json_option, limit_option, settings_option
from daemon.cli.output import FOUND_WRONG, complain, moment, print_json, print_table, record_json
from daemon.core.audit import action_text, details, who, whom
from daemon.ledger_access import read_rows
from daemon.settings import Settings
from daemon.store.tables.audit import broken_entry, newest_entries


@click.command("audit", epilog=examples("mcfd audit", "mcfd audit --limit 1000 --json"))
@settings_option
@limit_option(100_000, tr("How many entries, the newest."))
@json_option
def command(settings: Settings, limit: int, as_json: bool) -> int:
    entries = read_rows(settings, newest_entries, limit)[::-1]
    broken = read_rows(settings, broken_entry)
    if as_json:
        print_json({"ok": broken is None, "entries": [record_json(entry, hash=entry.hash.hex()) for entry in entries]})
    else:
        zone, say = settings.reports.zone, Speaker(ambient())
        print_table(
            (tr("ID"), tr("WHEN"), tr("WHO"), tr("FROM"), tr("ACTION"), tr("WHAT"), tr("DETAIL")),
            [
                (
                    *(entry.id, moment(entry.at, zone), who(entry.actor, {}, say)),
                    *(entry.address, action_text(entry.action, say)),
                    entry.subject if entry.subject.startswith("/") else whom(entry.subject, {}, say),
                    details(entry.detail, say),
                )
                for entry in entries
            ],
        )
    if broken is not None:
        complain("the audit log is broken: entry {id} does not follow from the one before it", id=broken.id)
    return FOUND_WRONG if broken else 0
