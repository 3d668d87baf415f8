# ruff: noqa: INP001 -- a script, run by `make deb`; a package of this name would hide PyPI's `packaging`
"""Builds `dist/mcfd_<version>_<arch>.deb` for amd64 and arm64, on either, for every Python of `libraries.PYTHONS`.

From one tree always the same bytes, in whatever directory it stands. What would differ from one build to the next is
taken out: times (SOURCE_DATE_EPOCH, else the last commit's), owners and modes, the order of files (dpkg-deb sorts),
scripts and records that name the build's directory. Byte code is made on the box, by the Python that is there.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import libraries
import records
from catalogue import compile_catalogues
from libraries import ARCHITECTURES, TREE, Architecture

HERE = TREE / "packaging"
NAME = "mcfd"
LIB = "usr/lib/mcfd"
DOC = "usr/share/doc/mcfd"
UNITS = "usr/lib/systemd/system"
# Ours, as far as a shop's box runs them; headquarters is a package of its own.
OWN = ("bridge", "common", "daemon", "edge", "simulator")
LEVEL = 6
SCRIPTS = ["preinst", "postinst", "prerm", "postrm"]
# Page → (locale, place): what `manual.py` prints.
MANUAL = {
    ("mcfd.1", "en"): "usr/share/man/man1/mcfd.1.gz",
    ("mcfd.1", "fr"): "usr/share/man/fr/man1/mcfd.1.gz",
    ("mcfd.toml.5", "en"): "usr/share/man/man5/mcfd.toml.5.gz",
}
# Source in the tree, place on the box.
FILES = {
    "packaging/mcfd": "usr/bin/mcfd",
    "packaging/box/compile_modules.py": "usr/share/mcfd/compile_modules.py",
    "packaging/box/mcfd.rtupdate": "usr/share/python3/runtime.d/mcfd.rtupdate",
    "packaging/box/upgrade": "usr/share/mcfd/upgrade",
    "packaging/box/finish-upgrade": "usr/share/mcfd/finish-upgrade",
    "packaging/box/finish-first-start": "usr/share/mcfd/finish-first-start",
    "packaging/lintian-overrides": "usr/share/lintian/overrides/mcfd",
    "packaging/completion.bash": "usr/share/bash-completion/completions/mcfd",
    "systemd/mcfd.service": f"{UNITS}/mcfd.service",
    "systemd/mcfd-.service.d/10-job.conf": f"{UNITS}/mcfd-.service.d/10-job.conf",
    "systemd/mcfd-backup.service": f"{UNITS}/mcfd-backup.service",
    "systemd/mcfd-backup.timer": f"{UNITS}/mcfd-backup.timer",
    "systemd/mcfd-verify.service": f"{UNITS}/mcfd-verify.service",
    "systemd/mcfd-verify.timer": f"{UNITS}/mcfd-verify.timer",
    "systemd/stick-mcfd@.service": f"{UNITS}/stick-mcfd@.service",
    "systemd/upgrade-mcfd.service": f"{UNITS}/upgrade-mcfd.service",
    "systemd/finish-upgrade-mcfd.service": f"{UNITS}/finish-upgrade-mcfd.service",
    "systemd/first-start-mcfd.service": f"{UNITS}/first-start-mcfd.service",
    "systemd/upgrade-mcfd.timer": f"{UNITS}/upgrade-mcfd.timer",
    "systemd/mcfd.sysusers": "usr/lib/sysusers.d/mcfd.conf",
    "systemd/mcfd.tmpfiles": "usr/lib/tmpfiles.d/mcfd.conf",
    "systemd/70-mcfd.rules": "usr/lib/udev/rules.d/70-mcfd.rules",
    "config/avahi/mcfd.service": "usr/share/mcfd/avahi/mcfd.service",
    "config/mcfd.toml": "etc/mcfd/mcfd.toml.example",
    "docs/install.md": f"{DOC}/install.md",
    "docs/install.fr.md": f"{DOC}/install.fr.md",
    "docs/first-contact.md": f"{DOC}/first-contact.md",
    "docs/first-contact.fr.md": f"{DOC}/first-contact.fr.md",
    "docs/configuration.md": f"{DOC}/configuration.md",
}


def run(*command: str | Path, **environment: str) -> str:
    words = [str(word) for word in command]
    done = subprocess.run(  # noqa: S603  # our own commands
        words, check=True, text=True, stdout=subprocess.PIPE, encoding="utf-8", env=os.environ | environment
    )
    return done.stdout


def source_date_epoch() -> int:
    return int(os.environ.get("SOURCE_DATE_EPOCH") or run("git", "-C", TREE, "log", "-1", "--format=%ct"))


def install_packages(lib: Path, project: dict[str, object], version: str) -> None:
    """Our own packages: their modules and the data that pyproject.toml names, and the metadata `mcfd --version` asks for."""
    package_data: dict[str, list[str]] = project["tool"]["setuptools"]["package-data"]  # type: ignore[index]  # plain TOML
    for package in OWN:
        for pattern in ["**/*.py", *package_data[package]]:
            for source in (TREE / package).glob(pattern):
                if source.is_file() and "__pycache__" not in source.parts and source.name != "py.typed":
                    target = lib / source.relative_to(TREE)
                    target.parent.mkdir(parents=True, exist_ok=True)
                    shutil.copyfile(source, target)
    metadata = lib / f"mcfd-{version}.dist-info" / "METADATA"
    metadata.parent.mkdir()
    metadata.write_text(f"Metadata-Version: 2.1\nName: mcfd\nVersion: {version}\n", encoding="utf-8")


def install_files(root: Path) -> None:
    for source, target in FILES.items():
        path = root / target
        path.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(TREE / source, path)


def install_documents(root: Path, version: str, found: list[libraries.Library], arch: str, epoch: int) -> None:
    """What Policy and a security officer ask for: changelog, copyright, manual pages, the list of libraries."""
    documents = {
        f"{DOC}/changelog.gz": records.changelog(version, epoch),
        f"{DOC}/copyright": records.copyright_file(found, epoch),
        f"{DOC}/mcfd.cdx.json": records.sbom(version, found, arch, epoch),
    }
    for (page, locale), place in MANUAL.items():
        documents[place] = run(sys.executable, HERE / "manual.py", page, str(epoch), LC_ALL=locale)
    for place, text in documents.items():
        path = root / place
        path.parent.mkdir(parents=True, exist_ok=True)
        content = text.encode("utf-8")
        path.write_bytes(gzip.compress(content, 9, mtime=0) if path.suffix == ".gz" else content)


def settle(root: Path, epoch: int) -> None:
    """One time for all, and modes that do not depend on the builder's umask."""
    for path in [root, *root.rglob("*")]:
        path.chmod(0o755 if path.is_dir() or path.stat().st_mode & 0o100 else 0o644)
        os.utime(path, (epoch, epoch))


def glibc(arch: Architecture, lib: Path) -> str:
    """The C library that the compiled modules ask for, from the symbols they name."""
    modules = sorted(lib.rglob("*.so*"))
    named = run(f"{arch.triplet}-objdump", "-T", *modules, LC_ALL="C")
    return "2." + str(max(int(minor) for minor in re.findall(r"\bGLIBC_2\.(\d+)", named)))


def write_control(root: Path, version: str, arch: Architecture) -> None:
    control = root / "DEBIAN"
    files = sorted(path for path in root.rglob("*") if path.is_file())
    control.mkdir()
    size = sum(-(-path.stat().st_size // 1024) for path in files)
    newest = int(libraries.PYTHONS[-1].split(".")[1]) + 1
    values = {
        "VERSION": version,
        "ARCH": arch.debian,
        "SIZE": str(size),
        "MAINTAINER": records.MAINTAINER,
        "PYTHON": f"python3 (>= {libraries.PYTHONS[0]}), python3 (<< 3.{newest})",
        "LIBC": f"libc6 (>= {glibc(arch, root / LIB)})",
    }
    text = (HERE / "control.in").read_text(encoding="utf-8")
    for name, value in values.items():
        text = text.replace(f"@{name}@", value)
    (control / "control").write_text(text, encoding="utf-8")
    sums = [f"{hashlib.md5(path.read_bytes()).hexdigest()}  {path.relative_to(root)}\n" for path in files]  # noqa: S324  # dpkg's format
    (control / "md5sums").write_text("".join(sums), encoding="utf-8")
    conffiles = [f"/{target}\n" for target in FILES.values() if target.startswith("etc/")]
    (control / "conffiles").write_text("".join(conffiles), encoding="utf-8")
    for script in SCRIPTS:
        shutil.copy(HERE / "maintainer" / script, control / script)


def build(version: str, output: Path, arch: Architecture, cache: Path, level: int) -> Path:
    epoch = source_date_epoch()
    package = output / f"{NAME}_{version}_{arch.debian}.deb"
    output.mkdir(parents=True, exist_ok=True)
    project = tomllib.loads((TREE / "pyproject.toml").read_text(encoding="utf-8"))
    with tempfile.TemporaryDirectory(prefix=f"{NAME}-deb-") as scratch:
        root = Path(scratch) / "root"
        lib = root / LIB
        lib.mkdir(parents=True)
        found = libraries.install(libraries.download(arch, cache), lib)
        libraries.strip(arch, lib)
        install_packages(lib, project, version)
        install_files(root)
        install_documents(root, version, found, arch.debian, epoch)
        write_control(root, version, arch)
        settle(root, epoch)
        pack(root, package, epoch, level)
    return package


def pack(root: Path, package: Path, epoch: int, level: int) -> None:
    """With one thread, as more could cut the stream elsewhere."""
    run("dpkg-deb", "--root-owner-group", "-Zxz", f"-z{level}", "--threads-max=1", "--build", root, package,
        SOURCE_DATE_EPOCH=str(epoch))  # fmt: skip


def read_arguments(description: str | None) -> argparse.Namespace:
    project = tomllib.loads((TREE / "pyproject.toml").read_text(encoding="utf-8"))
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--version", default=project["project"]["version"])
    parser.add_argument("--output", type=Path, default=TREE / "dist")
    parser.add_argument("--arch", action="append", choices=ARCHITECTURES, help="both, unless said")
    parser.add_argument("--wheels", type=Path, default=TREE / "build/wheels", help="where downloads are kept")
    parser.add_argument(
        "--level", type=int, default=LEVEL, help="of the compression; 1 takes a fifth of the time and a fifth more room"
    )
    return parser.parse_args()


def main() -> None:
    if shutil.which("dpkg-deb") is None:
        sys.exit("mcfd: dpkg-deb is missing; a package for Debian is built on Debian")
    arguments = read_arguments(__doc__)
    compile_catalogues(TREE / "common/language/locales")
    wanted = [ARCHITECTURES[name] for name in arguments.arch or ARCHITECTURES]
    with ThreadPoolExecutor() as pool:
        packages = pool.map(
            lambda arch: build(arguments.version, arguments.output, arch, arguments.wheels, arguments.level), wanted
        )
    for package in packages:
        size = run("dpkg-deb", "--field", package, "Installed-Size")
        sys.stdout.write(f"{package}  ({package.stat().st_size // 1024} KiB, {int(size) // 1024} MiB installed)\n")


if __name__ == "__main__":
    main()
