# ruff: noqa: INP001 -- beside build_deb.py; a package of this name would hide PyPI's `packaging`
"""The manual pages, made from what the commands and the settings say of themselves: `manual.py mcfd.1` or `mcfd.toml.5`.

In the language of the locale (LC_ALL), as everything that `mcfd` says; a process for each, since texts are bound when read.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import click

from daemon.cli import root
from daemon.language import ambient
from daemon.settings.describe import tables


@dataclass(frozen=True)
class Pair:
    """A sentence of these pages only, which are not part of the program and so not in its catalogue."""

    fr: str
    en: str

    def __str__(self) -> str:
        return self.en if ambient() == "en" else self.fr


NAME = Pair("NOM", "NAME")
SYNOPSIS = Pair("SYNOPSIS", "SYNOPSIS")
DESCRIPTION = Pair("DESCRIPTION", "DESCRIPTION")
COMMANDS = Pair("COMMANDES", "COMMANDS")
EXIT = Pair("CODES DE RETOUR", "EXIT STATUS")
FILES = Pair("FICHIERS", "FILES")
SEE = Pair("VOIR AUSSI", "SEE ALSO")
WHAT = Pair("le service à côté de la machine fiscale d'une boutique", "the daemon beside a shop's fiscal machine")
SETTINGS = Pair("la configuration de mcfd", "the configuration of mcfd")
OWN_FILES = {
    "/etc/mcfd/mcfd.toml": Pair("la configuration, écrite par mcfd setup", "the configuration, written by mcfd setup"),
    "/etc/mcfd/credentials/": Pair("les secrets, lisibles par root seul", "the secrets, which root alone reads"),
    "/var/lib/mcfd/mcfd.sqlite3": Pair("le registre fiscal, à garder dix ans", "the fiscal ledger, kept for ten years"),
    "/var/lib/mcfd/backups/": Pair("les copies de chaque nuit", "each night's copies"),
}
TOML = Pair(
    "Un fichier TOML. Ce que chaque clé admet, et si elle vaut dès systemctl reload, est dans /usr/share/doc/mcfd ; "
    "mcfd config check vérifie le fichier.",
    "A TOML file. mcfd config check examines it; an unknown key, a wrong type or a value that cannot be is told in one "
    "line with the key's name. systemctl reload mcfd brings most keys into force without a restart.",
)


def escape(text: object) -> str:
    """As text of its own: no command of troff, no hyphen that a terminal would not find again."""
    plain = str(text).replace("\\", "\\e").replace("-", "\\-")
    return "\n".join(f"\\&{line}" if line[:1] in {".", "'"} else line for line in plain.splitlines())


def head(name: str, section: int, epoch: int, what: Pair) -> Iterator[str]:
    date = datetime.fromtimestamp(epoch, UTC).strftime("%Y-%m-%d")
    yield f'.TH "{name.upper()}" "{section}" "{date}" "mcfd"'
    yield f".SH {NAME}"
    yield f"{escape(name)} \\- {escape(what)}"


def command_page(epoch: int) -> Iterator[str]:
    yield from head("mcfd", 1, epoch, WHAT)
    yield f".SH {SYNOPSIS}"
    yield ".B mcfd\n.I COMMAND\n[\\fIOPTION\\fR]... [\\fIARGUMENT\\fR]..."
    yield f".SH {DESCRIPTION}"
    yield escape(root.help or "")
    yield f".SH {COMMANDS}"
    context = click.Context(root, info_name="mcfd")
    for name in root.list_commands(context):
        found = root.get_command(context, name)
        if found is not None:
            yield from describe(click.Context(found, info_name=name, parent=context))
    yield f".SH {EXIT}"
    yield escape(root.epilog or "")
    yield f".SH {FILES}"
    for path, text in OWN_FILES.items():
        yield f".TP\n.I {escape(path)}\n{escape(text)}"
    yield f".SH {SEE}\n.BR mcfd.toml (5),\n.BR systemctl (1)"


def describe(context: click.Context) -> Iterator[str]:
    """A command, its options, and the commands below it."""
    command = context.command
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            found = command.get_command(context, name)
            if found is not None:
                yield from describe(click.Context(found, info_name=name, parent=context))
        return
    yield f".SS {escape(' '.join([context.command_path, *command.collect_usage_pieces(context)]))}"
    yield escape(command.help or "")
    for parameter in command.get_params(context):
        record = parameter.get_help_record(context)
        if record is not None and "--help" not in parameter.opts:
            yield f".TP\n.B {escape(record[0])}\n{escape(record[1])}"


def settings_page(epoch: int) -> Iterator[str]:
    yield from head("mcfd.toml", 5, epoch, SETTINGS)
    yield f".SH {SYNOPSIS}\n.I /etc/mcfd/mcfd.toml"
    yield f".SH {DESCRIPTION}\n{escape(TOML)}"
    for section in tables():
        yield f".SS [{escape(section.name)}]"
        yield escape(section.text)
        for key in section.keys:
            yield f".TP\n.B {escape(key.name)}\n{escape(key.text)} ({escape(key.expected)})"
    yield f".SH {SEE}\n.BR mcfd (1)"


def main() -> None:
    page, epoch = sys.argv[1], int(sys.argv[2])
    lines = {"mcfd.1": command_page, "mcfd.toml.5": settings_page}[page](epoch)
    sys.stdout.reconfigure(encoding="utf-8")  # type: ignore[union-attr]  # a text stream, as always here
    sys.stdout.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
