# ruff: noqa: INP001 -- a script, run by the build; a package of this name would hide PyPI's `packaging`
"""Compiles the catalogues of texts with the standard library: each `.po` to the `.mo` that gettext reads. Omits fuzzy
and untranslated entries, as usual; `make check` fails on any. Reproducible. `python packaging/catalogue.py
[FOLDER]`."""

from __future__ import annotations

import ast
import struct
import sys
from pathlib import Path

FOLDER = Path(__file__).resolve().parent.parent / "common/language/locales"
MAGIC = 0x950412DE
HEADER_SIZE = 28


def read_po(text: str) -> dict[str, str]:
    """Ids and translations as in an `.mo`: plural forms separated by a zero byte. Contexts are not supported."""
    entries: dict[str, str] = {}
    for block in text.split("\n\n"):
        lines = [line for line in block.splitlines() if not line.startswith("#~")]
        if any(line.startswith("#,") and "fuzzy" in line for line in lines) and 'msgid ""\nmsgstr' not in block:
            continue
        parts: dict[str, str] = {}
        current = ""
        for line in lines:
            keyword, _, rest = line.partition(" ")
            if keyword.startswith("msg"):
                current, line = keyword, rest  # noqa: PLW2901  what is left of it
            if line.startswith('"'):
                parts[current] = parts.get(current, "") + ast.literal_eval(line)
        ids = [text for name, text in parts.items() if name.startswith("msgid")]
        texts = [text for name, text in parts.items() if name.startswith("msgstr")]
        if any(texts):
            entries["\0".join(ids)] = "\0".join(texts)
    return entries


def write_mo(entries: dict[str, str]) -> bytes:
    """The format of gettext: a header, a table of the sorted ids, one of the translations, then the strings."""
    pairs = sorted((one.encode(), other.encode()) for one, other in entries.items())
    ids = HEADER_SIZE
    texts = ids + 8 * len(pairs)
    at = texts + 8 * len(pairs)
    tables: list[tuple[int, int]] = []
    data = b""
    for column in (0, 1):
        for pair in pairs:
            tables.append((len(pair[column]), at + len(data)))
            data += pair[column] + b"\0"
    header = struct.pack("<7I", MAGIC, 0, len(pairs), ids, texts, 0, 0)
    return header + b"".join(struct.pack("<2I", *entry) for entry in tables) + data


def compile_catalogues(folder: Path) -> None:
    for source in sorted(folder.glob("*/LC_MESSAGES/*.po")):
        source.with_suffix(".mo").write_bytes(write_mo(read_po(source.read_text(encoding="utf-8"))))


if __name__ == "__main__":
    compile_catalogues(Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER)
