from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from daemon.cli import answers, helps
from daemon.cli.ledger import give_to_owner
from daemon.cli.shared import FOUND_WRONG, config_option, examples, json_option, print_json, say

if TYPE_CHECKING:
    from daemon.doctor.finding import Finding


@click.command("doctor", help=str(helps.HELP_DOCTOR), epilog=examples("sudo mcfd doctor", "mcfd doctor --json"))
@config_option
@json_option
def command(config: Path | None, as_json: bool) -> int:
    from daemon.doctor.examine import examine

    try:
        found = asyncio.run(examine(config))
    finally:
        _tidy(config)
    well = all(finding.state != "fail" for finding in found)
    if as_json:
        print_json({"ok": well, "checks": [msgspec.to_builtins(finding) for finding in found]})
    else:
        _show(found)
    return 0 if well else FOUND_WRONG


def _tidy(config: Path | None) -> None:
    """What SQLite left beside the ledger for root belongs to the daemon."""
    from daemon.settings import SettingsError, load

    try:
        path = load(config).storage.path
    except SettingsError:
        return  # told by the first check
    if path.exists():
        give_to_owner(path)


def _show(found: Sequence[Finding]) -> None:
    from daemon.doctor.wording import NAMES

    marks = {"ok": answers.FINE, "warn": answers.WARNING, "fail": answers.WRONG}
    width = max(len(str(mark)) for mark in marks.values())
    for finding in found:
        name = f"{NAMES[finding.check]} {finding.nim}".rstrip()
        say(f"{marks[finding.state]!s:<{width}}  {name}: {finding.found}")
        if finding.todo:
            say(f"{'':<{width}}  → {finding.todo}")
