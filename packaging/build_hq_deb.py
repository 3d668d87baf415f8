# ruff: noqa: INP001 -- a script beside build_deb.py, whose parts it uses
"""Builds `dist/mcfd-hq_<version>_<arch>.deb`, headquarters, from the lock `requirements/hq.txt` in the same way as `build_deb.py`."""

from __future__ import annotations

import sys
from pathlib import Path

import build_deb
import libraries
import records
from catalogue import compile_catalogues
from libraries import ARCHITECTURES, TREE, Library

LIB = "usr/lib/mcfd-hq"
DOC = "usr/share/doc/mcfd-hq"
OWN = ("common", "edge", "headquarters")
FILES = {
    "packaging/headquarters/mcfd-hq": "usr/bin/mcfd-hq",
    "packaging/box/compile_modules.py": "usr/share/mcfd-hq/compile_modules.py",
    "packaging/box/mcfd.rtupdate": "usr/share/python3/runtime.d/mcfd-hq.rtupdate",
    "systemd/mcfd-hq.service": "usr/lib/systemd/system/mcfd-hq.service",
    "systemd/mcfd-hq.service.d/10-job.conf": "usr/lib/systemd/system/mcfd-hq.service.d/10-job.conf",
    "systemd/mcfd-hq.sysusers": "usr/lib/sysusers.d/mcfd-hq.conf",
    "systemd/mcfd-hq.tmpfiles": "usr/lib/tmpfiles.d/mcfd-hq.conf",
    "config/hq.toml": "etc/mcfd-hq/hq.toml.example",
    "docs/headquarters.md": f"{DOC}/headquarters.md",
    "docs/upstream.md": f"{DOC}/upstream.md",
}


def install_documents(root: Path, _version: str, found: list[Library], _arch: str, epoch: int) -> None:
    (root / DOC / "copyright").write_text(records.copyright_file(found, epoch), encoding="utf-8")


def settle_on_headquarters() -> None:
    """What the other package's script calls by these names is headquarters' here."""
    libraries.LOCK = TREE / "requirements/hq.txt"
    build_deb.HERE = TREE / "packaging/headquarters"
    build_deb.NAME, build_deb.LIB, build_deb.DOC = "mcfd-hq", LIB, DOC
    build_deb.OWN, build_deb.FILES = OWN, FILES
    build_deb.install_documents = install_documents
    build_deb.SCRIPTS = ["postinst", "prerm", "postrm"]


def main() -> None:
    arguments = build_deb.read_arguments(__doc__)
    settle_on_headquarters()
    compile_catalogues(TREE / "common/language/locales")
    for name in arguments.arch or ARCHITECTURES:
        arch = ARCHITECTURES[name]
        package = build_deb.build(arguments.version, arguments.output, arch, arguments.wheels, arguments.level)
        sys.stdout.write(f"{package}  ({package.stat().st_size // 1024} KiB)\n")


if __name__ == "__main__":
    main()
