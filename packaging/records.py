# ruff: noqa: INP001 -- beside build_deb.py; a package of this name would hide PyPI's `packaging`
"""What a package says about itself: Debian's changelog and copyright, and the list of its libraries (CycloneDX)."""

from __future__ import annotations

import json
import re
import sys
import textwrap
import uuid
from datetime import UTC, datetime
from email.utils import format_datetime
from pathlib import Path

from libraries import PYTHONS, TREE, Library

MAINTAINER = "mcfd maintainers <maintainers@users.noreply.a-seed-a55af8d3.example>"
CHANGELOG = TREE / "CHANGELOG.md"
# Licence texts that every Debian has (Policy 12.5), by their first words.
COMMON = {"Apache License": "Apache-2.0", "Mozilla Public License": "MPL-2.0"}
NAMESPACE = uuid.uuid5(uuid.NAMESPACE_URL, "urn:mcfd:package")


def released(version: str) -> str | None:
    """What CHANGELOG.md has under the heading of `version` (or under "Unreleased"); None where there is no such heading."""
    parts = re.split(r"^## +(.+)$", CHANGELOG.read_text(encoding="utf-8"), flags=re.MULTILINE)
    sections = dict(zip(parts[1::2], parts[2::2], strict=True))
    for wanted in (version, "unreleased"):
        for heading, text in sections.items():
            if heading.lower().split()[0].strip("[]") == wanted:
                return text.strip()
    return None


def changelog(version: str, epoch: int) -> str:
    """Debian's form of it (Policy 4.4)."""
    text = released(version)
    if text is None:
        text = f"- Version {version}."
    lines = []
    text = re.sub(r"^### .*$", "", text, flags=re.MULTILINE)
    for item in re.split(r"^- ", text, flags=re.MULTILINE):
        plain = " ".join(item.replace("`", "").replace("**", "").split())
        if plain:
            lines += textwrap.wrap(plain, 76, initial_indent="  * ", subsequent_indent="    ", break_on_hyphens=False)
    date = format_datetime(datetime.fromtimestamp(epoch, UTC))
    return "\n".join([f"mcfd ({version}) stable; urgency=medium", "", *lines, "", f" -- {MAINTAINER}  {date}", ""])


def copyright_file(libraries: list[Library], epoch: int) -> str:
    """Whose it is, and the licence of each library in its own words; those that Debian has are named, not repeated."""
    year = datetime.fromtimestamp(epoch, UTC).year
    head = (
        f"mcfd\n\nCopyright: {year} mcfd maintainers\n\n"
        "The daemon's own files in /usr/lib/mcfd (bridge, common, daemon, simulator) and in this package's other\n"
        "directories are theirs.\nLicense: Apache-2.0\nFull text: /usr/share/common-licenses/Apache-2.0\n\n"
        "The libraries beside them come from the Python Package Index, compiled there, and\n"
        "have these licences:"
    )
    parts = [head]
    for library in libraries:
        names = sorted({_common(text) for text in library.license_texts} - {""})
        where = "".join(f"\nFull text: /usr/share/common-licenses/{name}" for name in names)
        texts = [text.strip() for text in library.license_texts if not _common(text)]
        parts.append(
            "\n\n".join([f"{'-' * 78}\n{library.name} {library.version}\nLicense: {library.license}{where}", *texts])
        )
    return "\n\n".join(parts) + "\n"


def _common(text: str) -> str:
    head = " ".join(text[:400].split())
    return next((name for words, name in COMMON.items() if words in head and len(text) > 5000), "")  # noqa: PLR2004  # the whole text, not a mention


def sbom(version: str, libraries: list[Library], arch: str, epoch: int) -> str:
    """CycloneDX 1.5: what is in the package, from the lock, with the hash of every wheel that was unpacked into it."""
    own = {"type": "application", "bom-ref": "mcfd", "name": "mcfd", "version": version}
    document = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "serialNumber": f"urn:uuid:{uuid.uuid5(NAMESPACE, f'{version} {arch} {epoch}')}",
        "version": 1,
        "metadata": {
            "timestamp": datetime.fromtimestamp(epoch, UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "component": own,
            "properties": [
                {"name": "mcfd:architecture", "value": arch},
                {"name": "mcfd:pythons", "value": " ".join(PYTHONS)},
            ],
        },
        "components": [_component(library) for library in libraries],
        "dependencies": [
            {"ref": "mcfd", "dependsOn": [_purl(library) for library in libraries]},
            *({"ref": _purl(library)} for library in libraries),
        ],
    }
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"


def _purl(library: Library) -> str:
    return f"pkg:pypi/{library.name}@{library.version}"


def _component(library: Library) -> dict[str, object]:
    """An expression of SPDX where the library gives one, its own words where not."""
    spdx = re.fullmatch(r"[\w.+-]+( (AND|OR|WITH) [\w.+-]+)*", library.license)
    licence = {"expression": library.license} if spdx else {"license": {"name": library.license}}
    return {
        "type": "library",
        "bom-ref": _purl(library),
        "name": library.name,
        "version": library.version,
        "purl": _purl(library),
        "licenses": [licence],
        "hashes": [{"alg": "SHA-256", "content": sha} for _, sha in library.wheels],
        "properties": [{"name": "mcfd:wheel", "value": f"{name} sha256:{sha}"} for name, sha in library.wheels],
    }


def agree(version: str, changes: Path = CHANGELOG) -> None:
    """A release is in the changelog under its own number."""
    headings = re.findall(r"^## +(\S+)", changes.read_text(encoding="utf-8"), flags=re.MULTILINE)
    if version not in headings:
        sys.exit(f"mcfd: {changes.name} has no section for {version}")
