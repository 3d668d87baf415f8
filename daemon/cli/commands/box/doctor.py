from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from daemon.cli.shared import FOUND_WRONG, coloured, config_option, examples, json_option, print_json, say
from daemon.language import tr

if TYPE_CHECKING:
    from daemon.doctor.finding import Finding


@click.command(
    "doctor",
    help=tr(
        "Look at everything that goes wrong in the field, and say for each what to do. Exit 1 when something is wrong."
    ),
    epilog=examples("sudo mcfd doctor", "mcfd doctor --json"),
)
@config_option
@json_option
def command(config: Path | None, as_json: bool) -> int:
    from daemon.doctor.examine import examine

    found = asyncio.run(examine(config))
    well = all(finding.state != "fail" for finding in found)
    if as_json:
        print_json({"ok": well, "checks": [msgspec.to_builtins(finding) for finding in found]})
    else:
        _show(found)
    return 0 if well else FOUND_WRONG


COLOURS = {"ok": "green", "warn": "yellow", "fail": "red"}


def _show(found: Sequence[Finding]) -> None:
    from daemon.doctor.wording import NAMES

    marks = {"ok": tr("ok"), "warn": tr("WARNING"), "fail": tr("WRONG")}
    width = max(len(mark) for mark in marks.values())
    for finding in found:
        name = f"{tr(NAMES[finding.check])} {finding.nim}".rstrip()
        told = tr("{name}: {found}", name=name, found=finding.found)
        mark = coloured(f"{marks[finding.state]:<{width}}", COLOURS[finding.state])
        say(f"{mark}  {told}")
        if finding.todo:
            say(f"{'':<{width}}  → {finding.todo}")
