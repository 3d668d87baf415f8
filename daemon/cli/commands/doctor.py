from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import aclosing
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from common.language import tr
from daemon.cli.failures import FOUND_WRONG
from daemon.cli.options import config_option, examples, json_option
from daemon.cli.output import coloured, print_json, say

if TYPE_CHECKING:
    from daemon.doctor.finding import CheckResult


@click.command(
    "doctor",
    epilog=examples("sudo mcfd doctor", "mcfd doctor --json"),
)
@config_option
@json_option
def command(config: Path | None, as_json: bool) -> int:
    found = asyncio.run(_examined(config, None if as_json else _show))
    well = all(finding.state != "fail" for finding in found)
    if as_json:
        print_json({"ok": well, "checks": [msgspec.to_builtins(finding) for finding in found]})
    return 0 if well else FOUND_WRONG


async def _examined(config: Path | None, tell: Callable[[CheckResult], None] | None) -> list[CheckResult]:
    """A machine that is silent takes seconds: what is found is told at once."""
    from daemon.doctor.examine import examine

    found = []
    async with aclosing(examine(config)) as findings:
        async for finding in findings:
            found.append(finding)
            if tell is not None:
                tell(finding)
    return found


COLOURS = {"ok": "green", "warn": "yellow", "fail": "red"}


def _show(finding: CheckResult) -> None:
    from daemon.doctor.wording import NAMES

    marks = {"ok": tr("ok"), "warn": tr("WARNING"), "fail": tr("WRONG")}
    width = max(len(mark) for mark in marks.values())
    name = f"{tr(NAMES[finding.check])} {finding.nim}".rstrip()
    told = tr("{name}: {found}", name=name, found=finding.found)
    mark = coloured(f"{marks[finding.state]:<{width}}", COLOURS[finding.state])
    say(f"{mark}  {told}")
    if finding.todo:
        say(f"{'':<{width}}  → {finding.todo}")
