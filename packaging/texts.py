# ruff: noqa: INP001 -- a script, run by make; a package of this name would hide PyPI's `packaging`
"""Compares the catalogue of texts with the code: `check` reports differences, `update` writes new texts into the `.po`
files.

Texts are found by the names of their calls: `tr("…")`, `say("…")`, `Text("…")`, `Counted("…", "…", n)`,
`Reason("code", "…")` (common/language); output and errors of commands `complain("…")`, `Failure("…")`, `Member("…")`
(daemon/cli); click's plurals `Plural("…", "…")` (daemon/cli/groups); doctor's findings and advice `.fail("…", "…")`."""

from __future__ import annotations

import string
import sys
from collections.abc import Iterator, Sequence
from io import BytesIO
from pathlib import Path

from babel.messages.catalog import Catalog, Message
from babel.messages.extract import extract_from_dir
from babel.messages.pofile import read_po, write_po

TREE = Path(__file__).resolve().parent.parent
FOLDER = TREE / "common/language/locales"
PACKAGES = ("bridge", "common", "daemon", "headquarters", "relay")
METHODS = [("**.py", "python"), ("**/templates/**.html", "jinja2.ext:babel_extract")]
SENTENCES = ("tr", "say", "complain", "Failure", "Unavailable", "explained", "Member", "Text")
KEYWORDS = {**dict.fromkeys(SENTENCES), "Counted": (1, 2), "Reason": (2,)}
CLICK = "daemon/cli"
DOCTOR = "daemon/doctor"
FINDINGS = ({"ok": (1,), "warn": (1,), "fail": (1,)}, {"warn": (2,), "fail": (2,)})
SPACED = (":", ";", "?", "!")
"""French has a no-break space before these, so that no line begins with one."""


def found() -> Catalog:
    """Every text in the code, in order."""
    catalogue = Catalog(charset="utf-8")
    for package in PACKAGES:
        for _file, _line, message, _comments, _context in extract_from_dir(
            str(TREE / package), method_map=METHODS, keywords=KEYWORDS
        ):
            for text in (message,) if isinstance(message, str) else message:
                catalogue.add(text)
    for keywords in FINDINGS:
        for _file, _line, text, _comments, _context in extract_from_dir(str(TREE / DOCTOR), keywords=keywords):
            catalogue.add(text)
    for _file, _line, pair, _comments, _context in extract_from_dir(str(TREE / CLICK), keywords={"Plural": (1, 2)}):
        catalogue.add(pair)
    return catalogue


def sources(folder: Path) -> list[Path]:
    return sorted(folder.glob("*/LC_MESSAGES/*.po"))


def load(path: Path) -> Catalog:
    with path.open("rb") as file:
        return read_po(file, locale=path.parent.parent.name)


def update(folder: Path) -> None:
    """Adds new texts without a translation and removes unused ones; nothing is guessed."""
    code = found()
    for path in sources(folder):
        old = load(path)
        new = Catalog(locale=old.locale, charset="utf-8", header_comment=old.header_comment)
        for message in code:
            if message.id:
                before = old.get(message.id)
                new.add(message.id, before.string if before and type(before.id) is type(message.id) else "")
        out = BytesIO()
        write_po(out, new, width=118, sort_output=True, omit_header=True)
        head = path.read_text(encoding="utf-8").partition("\n\n")[0]
        path.write_text(head + "\n\n" + out.getvalue().decode(), encoding="utf-8")


def faults(code: Catalog, path: Path) -> Iterator[str]:
    catalogue = load(path)
    for message in code:
        if message.id and message.id not in catalogue:
            yield f"missing: {message.id!r}"
    for message in catalogue:
        if message.id:
            yield from faults_of(message, code)


def faults_of(message: Message, code: Catalog) -> Iterator[str]:
    if message.id not in code:
        yield f"no longer used: {message.id!r}"
    if message.fuzzy:
        yield f"fuzzy: {message.id!r}"
    for english, translation in zip(forms(message.id), forms(message.string), strict=False):
        if not translation:
            yield f"not translated: {english!r}"
        elif names(english) != names(translation):
            yield f"other names in braces than the English: {english!r}"
        elif unspaced(translation):
            yield f"a plain space before : ; ? or !, where a no-break space belongs: {english!r}"


def forms(text: str | Sequence[str]) -> Sequence[str]:
    return (text,) if isinstance(text, str) else text


def names(text: str) -> set[str]:
    """The `{names}` in a text; none for an invalid format."""
    try:
        return {name for _, name, _, _ in string.Formatter().parse(text) if name}
    except ValueError:
        return set()


def unspaced(text: str) -> bool:
    return any(f" {mark}" in text for mark in SPACED)


def check(folder: Path) -> list[str]:
    code = found()
    return [f"{path.parent.parent.name}: {fault}" for path in sources(folder) for fault in faults(code, path)]


def main() -> None:
    command, folder = sys.argv[1], Path(sys.argv[2]) if sys.argv[2:] else FOLDER
    if command == "update":
        update(folder)
        return
    problems = check(folder)
    sys.stderr.write("".join(f"{line}\n" for line in problems))
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
