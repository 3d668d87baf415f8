# ruff: noqa: INP001 -- beside libraries.py; a package of this name would hide PyPI's `packaging`
"""The list of a package's libraries (CycloneDX 1.5), from the lock, with the hash of every unpacked wheel."""

from __future__ import annotations

import json
import os
import re
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

NAMESPACE = uuid.uuid5(uuid.NAMESPACE_URL, "urn:mcfd:package")


@dataclass(frozen=True)
class Library:
    """One library of the package, from its wheels' metadata."""

    name: str
    version: str
    license: str
    wheels: tuple[tuple[str, str], ...]
    """(file name, SHA-256) of each unpacked wheel."""


def document(package: str, version: str, libraries: list[Library], arch: str, pythons: Sequence[str]) -> str:
    epoch = int(os.environ["SOURCE_DATE_EPOCH"])
    own = {"type": "application", "bom-ref": package, "name": package, "version": version}
    content = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "serialNumber": f"urn:uuid:{uuid.uuid5(NAMESPACE, f'{package} {version} {arch} {epoch}')}",
        "version": 1,
        "metadata": {
            "timestamp": datetime.fromtimestamp(epoch, UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "component": own,
            "properties": [
                {"name": "mcfd:architecture", "value": arch},
                {"name": "mcfd:pythons", "value": " ".join(pythons)},
            ],
        },
        "components": [_component(library) for library in libraries],
        "dependencies": [
            {"ref": package, "dependsOn": [_purl(library) for library in libraries]},
            *({"ref": _purl(library)} for library in libraries),
        ],
    }
    return json.dumps(content, indent=1, ensure_ascii=False) + "\n"


def _purl(library: Library) -> str:
    return f"pkg:pypi/{library.name}@{library.version}"


def _component(library: Library) -> dict[str, object]:
    """The licence as an SPDX expression if the library has one, otherwise as text."""
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
