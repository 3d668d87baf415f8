# ruff: noqa: INP001 -- a script beside build_deb.py, whose parts it uses
"""Builds `dist/mcfd-hq_<version>_<arch>.deb`, headquarters, from the lock `requirements/hq.txt` in the same way as `build_deb.py`."""

from __future__ import annotations

import argparse
import sys
import tempfile
import tomllib
from pathlib import Path

import build_deb
import libraries
import records
from libraries import ARCHITECTURES, TREE, Architecture

LIB = "usr/lib/mcfd-hq"
DOC = "usr/share/doc/mcfd-hq"
OWN = ("exchange", "headquarters", "pagekit")
FILES = {
    "packaging/headquarters/mcfd-hq": "usr/bin/mcfd-hq",
    "systemd/mcfd-hq.service": "usr/lib/systemd/system/mcfd-hq.service",
    "systemd/mcfd-hq.service.d/10-job.conf": "usr/lib/systemd/system/mcfd-hq.service.d/10-job.conf",
    "systemd/mcfd-hq.sysusers": "usr/lib/sysusers.d/mcfd-hq.conf",
    "systemd/mcfd-hq.tmpfiles": "usr/lib/tmpfiles.d/mcfd-hq.conf",
    "config/hq.toml": "etc/mcfd-hq/hq.toml.example",
    "docs/headquarters.md": f"{DOC}/headquarters.md",
    "docs/upstream.md": f"{DOC}/upstream.md",
}


def build(version: str, output: Path, arch: Architecture, cache: Path, level: int) -> Path:
    epoch = build_deb.source_date_epoch()
    package = output / f"mcfd-hq_{version}_{arch.debian}.deb"
    output.mkdir(parents=True, exist_ok=True)
    project = tomllib.loads((TREE / "pyproject.toml").read_text(encoding="utf-8"))
    with tempfile.TemporaryDirectory(prefix="mcfd-hq-deb-") as scratch:
        root = Path(scratch) / "root"
        lib = root / LIB
        lib.mkdir(parents=True)
        found = libraries.install(libraries.download(arch, cache), lib)
        libraries.strip(arch, lib)
        build_deb.install_packages(lib, project, version)
        build_deb.install_files(root)
        copyright_file = root / DOC / "copyright"
        copyright_file.write_text(records.copyright_file(found, epoch), encoding="utf-8")
        build_deb.write_control(root, version, arch)
        build_deb.settle(root, epoch)
        build_deb.pack(root, package, epoch, level)
    return package


def settle_on_headquarters() -> None:
    """What the other package's script calls by these names is headquarters' here."""
    libraries.LOCK = TREE / "requirements/hq.txt"
    build_deb.HERE = TREE / "packaging/headquarters"
    build_deb.LIB, build_deb.DOC, build_deb.OWN = LIB, DOC, OWN
    build_deb.FILES = FILES
    build_deb.SCRIPTS = ["postinst", "prerm", "postrm"]


def main() -> None:
    project = tomllib.loads((TREE / "pyproject.toml").read_text(encoding="utf-8"))
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--version", default=project["project"]["version"])
    parser.add_argument("--output", type=Path, default=TREE / "dist")
    parser.add_argument("--arch", action="append", choices=ARCHITECTURES, help="both, unless said")
    parser.add_argument("--wheels", type=Path, default=TREE / "build/wheels", help="where downloads are kept")
    parser.add_argument("--level", type=int, default=build_deb.LEVEL, help="of the compression")
    arguments = parser.parse_args()
    settle_on_headquarters()
    for name in arguments.arch or ARCHITECTURES:
        package = build(arguments.version, arguments.output, ARCHITECTURES[name], arguments.wheels, arguments.level)
        sys.stdout.write(f"{package}  ({package.stat().st_size // 1024} KiB)\n")


if __name__ == "__main__":
    main()
