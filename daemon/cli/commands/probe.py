"""`mcfd machine probe`: first contact with a machine, and one file with the results to send."""

import asyncio
import sys
from collections import Counter
from datetime import datetime
from pathlib import Path

import click

from common.language import tr
from daemon.cli.options import config_option, examples, json_option
from daemon.cli.output import FOUND_WRONG, Unavailable, complain, print_json, say, writing
from daemon.owner import as_owner
from daemon.probe.connect import SPEEDS, NoMachine
from daemon.probe.replies import ProbeFinding
from daemon.probe.run import ProbeResult, SectionNotFound, lines_of, row, write, write_bundle
from daemon.probe.run import probe as probe_port
from daemon.settings import SettingsError, load

FATAL = ("state", "seq", "repeat")
"""Checks that, if contradicted, exclude this machine from use."""


@click.command(
    "probe",
    epilog=examples("mcfd machine probe /dev/mcf-EL02000015", "mcfd machine probe tcp://192.168.1.50:4001"),
)
@config_option
@click.argument("port")
@click.option(
    "--speed", type=click.IntRange(300, 4_000_000), default=SPEEDS[0], help=tr("The speed to ask at first, bit/s.")
)
@click.option(
    "--folder",
    type=click.Path(path_type=Path, file_okay=False, exists=True),
    default=Path(),
    help=tr("Where the file to send is put; this folder."),
)
@click.option("--write", "writes", is_flag=True, help=tr("Write the settings that were found without asking."))
@json_option
def command(*, config: Path | None, port: str, speed: int, folder: Path, writes: bool, as_json: bool) -> None:
    try:
        result = asyncio.run(probe_port(port, speed, on_finding=(lambda _: None) if as_json else _show))
    except NoMachine as error:
        raise Unavailable(error) from error
    with writing(folder), as_owner(folder):
        path = write_bundle(result, port, folder, datetime.now())  # noqa: DTZ005  for who sits at the box
    if as_json:
        findings = [finding.in_english for finding in result.findings]
        print_json({"nim": result.nim, "findings": findings, "settings": result.settings, "file": str(path)})
    else:
        _sum_up(result, path)
    if result.settings and not as_json:
        _settings(config, result, writes=writes)
    if result.broken_off or any(each.verdict == "contradicted" and each.check in FATAL for each in result.findings):
        sys.exit(FOUND_WRONG)


def _show(finding: ProbeFinding) -> None:
    for line in row(finding):
        say(line)


def _sum_up(result: ProbeResult, path: Path) -> None:
    counts = Counter(finding.verdict for finding in result.findings)
    if result.broken_off:
        complain("broken off: {why}", why=result.broken_off)
    click.echo()
    say(
        "{nim}: {confirmed} confirmed, {contradicted} contradicted, {open} not tried",
        nim=result.nim,
        confirmed=counts["confirmed"],
        contradicted=counts["contradicted"],
        open=counts["not tried"],
    )
    say("the file to send: {path}", path=path)


def _settings(config: Path | None, result: ProbeResult, *, writes: bool) -> None:
    click.echo()
    say("In the section [[machine]] of {nim}:", nim=result.nim)
    for line in lines_of(result.settings):
        say(f"  {line}")
    file = _config_file(config)
    if file is None or not (writes or sys.stdin.isatty()):
        return
    if not writes and not click.confirm(tr("Write them to {path}?", path=file), default=True):
        return
    try:
        with writing(file):
            old_file = write(file, result.nim, result.settings)
    except SectionNotFound:
        complain("{path} has no section of {nim}: sudo mcfd setup, then probe again", path=file, nim=result.nim)
    else:
        say("written; the old one is {path}; now: sudo systemctl restart mcfd", path=old_file)


def _config_file(config: Path | None) -> Path | None:
    """None before there is a configuration: a first contact may precede it."""
    try:
        return load(config).file
    except SettingsError:
        return None
