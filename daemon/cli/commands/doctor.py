from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import aclosing, closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from common.language import Text, tr
from common.language.system import reason
from daemon.cli.options import config_option, examples, json_option
from daemon.cli.output import FOUND_WRONG, Failure, coloured, print_json, say

if TYPE_CHECKING:
    from daemon.doctor.wording import CheckResult

SHOW_EVERY = 0.2
"""Seconds; short enough that the last number shown is clear."""
COLOURS = {"ok": "green", "warn": "yellow", "fail": "red"}


@click.command(
    "doctor",
    epilog=examples(
        "sudo mcfd doctor",
        "mcfd doctor --json",
        "sudo mcfd doctor --disk /var/lib/mcfd",
        "sudo mcfd doctor --disk /var/lib/mcfd --pull-the-plug",
        "sudo mcfd doctor --disk /var/lib/mcfd --pull-the-plug --shown 1234-AB",
    ),
)
@config_option
@click.option(
    "--disk",
    type=click.Path(path_type=Path, file_okay=False, exists=True),
    metavar=tr("FOLDER"),
    help=tr("Look at the disk of that folder instead: speed of a sync, room, wear."),
)
@click.option(
    "--pull-the-plug",
    is_flag=True,
    help=tr("Find out whether it keeps what it acknowledges: writes blocks until the plug is pulled."),
)
@click.option(
    "--shown",
    "code_word",
    metavar=tr("NUMBER"),
    help=tr("After the restart: the number that was shown last, with its letters."),
)
@json_option
def command(config: Path | None, disk: Path | None, pull_the_plug: bool, code_word: str | None, as_json: bool) -> int:
    if (pull_the_plug and disk is None) or (code_word is not None and not pull_the_plug):
        raise click.UsageError(tr("--pull-the-plug needs --disk FOLDER, and --shown needs both"))
    if disk is None:
        found = asyncio.run(_examined(config, None if as_json else _show))
    elif pull_the_plug and code_word is None:
        return _write(disk)
    else:
        found = _of_disk(disk, code_word)
        if not as_json:
            for finding in found:
                _show(finding)
    well = all(finding.state != "fail" for finding in found)
    if as_json:
        print_json({"ok": well, "checks": [msgspec.to_builtins(finding) for finding in found]})
    return 0 if well else FOUND_WRONG


def _of_disk(folder: Path, code_word: str | None) -> list[CheckResult]:
    from daemon.doctor.disk import check_disk_health, judge_blocks

    if code_word is None:
        return list(check_disk_health(folder))
    with _testing(folder):
        return [judge_blocks(folder, code_word)]


@contextmanager
def _testing(folder: Path) -> Iterator[None]:
    """As the owner of the folder. Raises Failure for an error that prevents the test."""
    from daemon.doctor.disk import CannotTest
    from daemon.owner import as_owner

    try:
        with as_owner(folder):
            yield
    except CannotTest as error:
        raise Failure(error) from error
    except OSError as error:
        raise Failure("{folder}: {why}", folder=folder, why=reason(error)) from error


def _write(folder: Path) -> int:
    """Writes until the power fails; Ctrl-C ends it without a test."""
    from daemon.doctor.disk import write_blocks

    say("1. Wait until numbers appear, and at least half a minute more.")
    say("2. Pull the plug of the box (not the switch). Note the last number: over the network it stays on your screen.")
    say("3. Start the box, and type: sudo mcfd doctor --disk {folder} --pull-the-plug --shown NUMBER", folder=folder)
    say("Ctrl-C ends it, and nothing was tested. Numbers that the disk has acknowledged:")
    end = "\r" if sys.stdout.isatty() else "\n"
    last_at = float("-inf")
    with _testing(folder), closing(write_blocks(folder)) as written:
        for number in written:
            if time.monotonic() - last_at >= SHOW_EVERY:
                last_at = time.monotonic()
                print(f"  {number}", end=end, flush=True)  # noqa: T201  overwrites one line
    return 0


async def _examined(config: Path | None, tell: Callable[[CheckResult], None] | None) -> list[CheckResult]:
    """Passes each finding to `tell` at once: a silent machine takes seconds."""
    found = []
    async with aclosing(examine(config)) as findings:
        async for finding in findings:
            found.append(finding)
            if tell is not None:
                tell(finding)
    return found


async def examine(config: Path | None) -> AsyncGenerator[CheckResult, None]:
    """Yields each finding at once, the first before the other checks are imported. Only reads, and no line in use."""
    from daemon.doctor.wording import Check
    from daemon.settings import SettingsError, check_files, load

    try:
        settings = load(config)
        check_files(settings)
    except SettingsError as error:
        yield Check("configuration").fail(
            error, Text("correct that line, then mcfd config check; no configuration yet: sudo mcfd setup")
        )
        from daemon.doctor.box import check_box_clock

        yield check_box_clock()
        return
    yield Check("configuration").ok(Text("{file} can be read", file=settings.file))
    from daemon.doctor.checks import check_all  # imported after the first finding is printed

    async for finding in check_all(settings):
        yield finding


def _show(finding: CheckResult) -> None:
    from daemon.doctor.wording import NAMES

    marks = {"ok": tr("ok"), "warn": tr("WARNING"), "fail": tr("WRONG")}
    width = max(len(mark) for mark in marks.values())
    name = f"{tr(NAMES[finding.check])} {finding.nim}".rstrip()
    line = tr("{name}: {found}", name=name, found=finding.found)
    mark = coloured(f"{marks[finding.state]:<{width}}", COLOURS[finding.state])
    say(f"{mark}  {line}")
    if finding.todo:
        say(f"{'':<{width}}  → {finding.todo}")
