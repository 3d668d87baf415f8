import json
import shutil
import subprocess
from collections import deque
from collections.abc import Iterable
from datetime import datetime
from typing import Any

import click

from common.language import ambient, tr
from common.web.formats import visible
from daemon import log_words
from daemon.cli.options import examples
from daemon.cli.output import Unavailable


@click.command("logs", epilog=examples("mcfd logs", "mcfd logs -f", "mcfd logs --file mcfd.log"))
@click.option("-f", "--follow", is_flag=True, help=tr("Go on as new lines come."))
@click.option(
    "-n", "--lines", type=click.IntRange(1, 100_000), default=100, show_default=True, help=tr("Lines at the most.")
)
@click.option(
    "--file",
    type=click.Path(exists=True, dir_okay=False, allow_dash=True),
    default=None,
    help=tr("Read this file's lines instead; - is stdin, all of it, as it comes."),
)
def command(lines: int, file: str | None, *, follow: bool) -> None:
    if file is not None:
        with click.open_file(file) as opened:
            show(opened if file == "-" else deque(opened, lines))
        return
    journalctl = shutil.which("journalctl")
    if journalctl is None:
        raise Unavailable("there is no journalctl on this box; with --file the lines of a file are shown")
    arguments = [journalctl, "--unit=mcfd", "--output=cat", f"--lines={lines}", *(["--follow"] if follow else [])]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True) as process:  # noqa: S603
        try:
            show(process.stdout or ())
        finally:
            process.terminate()


def show(lines: Iterable[str]) -> None:
    for line in lines:
        click.echo(visible(readable(line.rstrip("\n"))))


def readable(line: str) -> str:
    """The event in words; a line that is no event of mcfd is returned unchanged."""
    try:
        event: Any = json.loads(line)
    except ValueError:
        return line
    if not isinstance(event, dict) or "event" not in event:
        return line
    language = ambient()
    at = _time(str(event.get("time", "")))
    columns = (at, log_words.level(event, language), log_words.words(event, language), log_words.values(event))
    return "  ".join(word for word in columns if word)


def _time(text: str) -> str:
    try:
        return datetime.fromisoformat(text).astimezone().strftime("%Y-%m-%d %H:%M:%S")
    except ValueError:
        return text
