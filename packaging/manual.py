# ruff: noqa: INP001 -- a script, run by debian/rules; a package of this name would hide PyPI's `packaging`
"""The manual page of a command and its subcommands, from their `--help`: `manual.py MODULE:COMMAND NAME LANGUAGE`."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import click

HEADINGS = {
    "en": ("NAME", "DESCRIPTION", "COMMANDS", "SEE ALSO"),
    "fr": ("NOM", "DESCRIPTION", "COMMANDES", "VOIR AUSSI"),
}


def verbatim(text: str) -> str:
    """Text for troff without commands, and with plain hyphens, so that it can be copied from a terminal."""
    plain = text.replace("\\", "\\e").replace("-", "\\-")
    return ".nf\n" + "\n".join(f"\\&{line}" for line in plain.splitlines()) + "\n.fi"


def commands(context: click.Context) -> Iterator[click.Context]:
    """All subcommands, without the groups."""
    group = context.command
    if not isinstance(group, click.Group):
        yield context
        return
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if command is not None:
            yield from commands(click.Context(command, info_name=name, parent=context))


def main() -> None:
    place, program, language = sys.argv[1:]
    os.environ["LC_ALL"] = language
    module, _, variable = place.partition(":")
    root: click.Group = getattr(importlib.import_module(module), variable)
    name, description, listed, see = HEADINGS[language]
    date = datetime.fromtimestamp(int(os.environ["SOURCE_DATE_EPOCH"]), UTC).strftime("%Y-%m-%d")
    context = click.Context(root, info_name=program, terminal_width=80)
    what = (root.help or "").strip().partition("\n")[0].rstrip(".").replace("-", "\\-")
    lines = [f'.TH {program.upper()} 1 "{date}" mcfd', f".SH {name}", f"{program} \\- {what}"]
    lines += [f".SH {description}", verbatim(context.get_help()), f".SH {listed}"]
    for each in commands(context):
        lines += [f".SS {each.command_path}", verbatim(each.get_help())]
    lines += [f".SH {see}", f"/usr/share/doc/{program}, ", ".BR systemctl (1)"]
    sys.stdout.reconfigure(encoding="utf-8")  # type: ignore[union-attr]  # a text stream, as always here
    sys.stdout.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
