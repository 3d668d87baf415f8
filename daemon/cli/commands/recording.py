"""`mcfd machine recording`: traffic on a line, as text or as a file to send."""

import os
import re
from datetime import datetime
from pathlib import Path

import click

from bridge.recording.recording import Recording
from common.language import tr
from common.language.system import reason
from daemon.cli.options import examples, settings_option
from daemon.cli.output import Failure, Unavailable, complain, find_machine, output_file, say
from daemon.owner import as_owner
from daemon.recording.transcript import as_file, read_incident, read_ring, since, transcript, without_people
from daemon.recording.writer import listed
from daemon.settings import Settings

_AGO = re.compile(r"([0-9]{1,6})([smhd])")
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}


class Moment(click.ParamType[int]):
    """Microseconds since 1970, from `10m`, `2h`, or a date and time (in the box's time zone if it has none)."""

    name = "time"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> int:
        if ago := _AGO.fullmatch(value):
            seconds = datetime.now().timestamp() - int(ago[1]) * _SECONDS[ago[2]]  # noqa: DTZ005  a difference only
        else:
            try:
                seconds = datetime.fromisoformat(value).timestamp()
            except (ValueError, OverflowError):
                self.fail(
                    tr("{value} is neither an age (10m, 2h) nor a time (2026-11-21T14:05)", value=value), param, ctx
                )
        return int(seconds * 1_000_000)


@click.command(
    "recording",
    epilog=examples(
        "mcfd machine recording EL02000015-1 --since 10m",
        "mcfd machine recording EL02000015-1 --incidents",
        "mcfd machine recording EL02000015-1 --incident 20261121T140512Z --save incident.rec",
    ),
)
@settings_option
@click.argument("nim", required=False)
@click.option("--since", "begin", type=Moment(), help=tr("From then on: 10m, 2h, or 2026-11-21T14:05."))
@click.option("--incident", metavar="ID", help=tr("One incident, as the log names it, instead of the last megabytes."))
@click.option("--incidents", is_flag=True, help=tr("List the incidents that are kept."))
@click.option("--raw", is_flag=True, help=tr("With names, IFU and addresses; for root only."))
@click.option(
    "--save",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar=tr("FILE"),
    help=tr("Write it to FILE, to be sent or played again (mcf-simulator --replay), instead of showing it."),
)
def command(
    *,
    settings: Settings,
    nim: str | None,
    begin: int | None,
    incident: str | None,
    incidents: bool,
    raw: bool,
    save: Path | None,
) -> None:
    if raw and os.geteuid() != 0:
        raise Failure("names, IFU and addresses are shown to root only (sudo)")
    folder = settings.recordings_of(find_machine(settings, nim or "").nim)
    try:
        with as_owner(folder):
            if incidents:
                for name in listed(folder):
                    say(name)
                return
            found = read_incident(folder, incident) if incident else read_ring(folder)
    except FileNotFoundError:
        raise Failure("there is no incident {name}; --incidents lists them", name=incident) from None
    except OSError as error:
        raise Unavailable("{path} cannot be read: {why}", path=folder, why=reason(error)) from error
    if not found.events:
        raise Unavailable("nothing has been recorded in {folder}", folder=folder)
    whole = found if raw else without_people(found)
    _give(whole if begin is None else since(whole, begin), save)


def _give(found: Recording, save: Path | None) -> None:
    for problem in found.problems:
        complain("line {line} of the recording: {what}", line=problem.line, what=problem.what)
    if save is None:
        for line in transcript(found.events):
            say(line)
        return
    with output_file(save) as file:
        file.write(as_file(found).encode())
    say("written: {path}", path=save)
