# ruff: noqa: INP001 -- a script, run by `make deb`; a package of this name would hide PyPI's `packaging`
"""Builds `dist/mcfd_<version>_<arch>.deb`: from one tree always the same bytes, in whatever directory it stands.

What would differ from one build to the next is taken out: times (SOURCE_DATE_EPOCH, else the last commit's), owners and modes,
the order of files (dpkg-deb sorts), scripts and records that name the build's directory, and byte code checked by time.
"""

from __future__ import annotations

import argparse
import compileall
import hashlib
import os
import py_compile
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

TREE = Path(__file__).resolve().parent.parent
HERE = TREE / "packaging"
LIB = "opt/mcfd/lib"
# Compiled wheels fit one Python only: the one of Debian 12.
PYTHON = (3, 11)

# Source in the tree, place on the box.
FILES = {
    "packaging/mcfd": "usr/bin/mcfd",
    "systemd/mcfd.service": "lib/systemd/system/mcfd.service",
    "systemd/mcfd-.service.d/10-job.conf": "lib/systemd/system/mcfd-.service.d/10-job.conf",
    "systemd/mcfd-backup.service": "lib/systemd/system/mcfd-backup.service",
    "systemd/mcfd-backup.timer": "lib/systemd/system/mcfd-backup.timer",
    "systemd/mcfd-verify.service": "lib/systemd/system/mcfd-verify.service",
    "systemd/mcfd-verify.timer": "lib/systemd/system/mcfd-verify.timer",
    "systemd/mcfd.sysusers": "usr/lib/sysusers.d/mcfd.conf",
    "systemd/mcfd.tmpfiles": "usr/lib/tmpfiles.d/mcfd.conf",
    "systemd/70-mcfd.rules": "lib/udev/rules.d/70-mcfd.rules",
    "config/avahi/mcfd.service": "usr/share/mcfd/avahi/mcfd.service",
    "config/mcfd.toml": "etc/mcfd/mcfd.toml.example",
    "packaging/completion.bash": "usr/share/bash-completion/completions/mcfd",
    "docs/install.md": "usr/share/doc/mcfd/install.md",
    "docs/install.fr.md": "usr/share/doc/mcfd/install.fr.md",
}
SCRIPTS = ["preinst", "postinst", "prerm", "postrm"]

# Needed to build or to start by hand, never by the daemon; and records that speak of files that are not here.
PRUNED = [
    "bin",
    "setuptools",
    "setuptools-*.dist-info",
    "pkg_resources",
    "_distutils_hack",
    "distutils-precedence.pth",
    "**/__pycache__",
    "*.dist-info/RECORD",
    "*.dist-info/INSTALLER",
    "*.dist-info/REQUESTED",
    "*.dist-info/direct_url.json",
    "*.dist-info/entry_points.txt",
    "**/*.c",
    "**/*.h",
    "**/*.pyx",
    "**/*.pxd",
]


def run(*command: str | Path) -> str:
    words = [str(word) for word in command]
    return subprocess.run(words, check=True, text=True, stdout=subprocess.PIPE).stdout.strip()  # noqa: S603  # our own commands


def source_date_epoch() -> int:
    return int(os.environ.get("SOURCE_DATE_EPOCH") or run("git", "-C", TREE, "log", "-1", "--format=%ct"))


def install_libraries(lib: Path) -> None:
    run(sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet", "--quiet", "install", "--require-hashes",
        "--only-binary", ":all:", "--no-compile", "--target", lib, "-r", TREE / "requirements/run.txt")  # fmt: skip
    for pattern in PRUNED:
        for path in list(lib.glob(pattern)):
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink()


def install_packages(lib: Path, project: dict[str, object], version: str) -> None:
    """Our own packages: their modules and the data that pyproject.toml names, and the metadata `mcfd --version` asks for."""
    package_data: dict[str, list[str]] = project["tool"]["setuptools"]["package-data"]  # type: ignore[index]  # plain TOML
    for package, data in package_data.items():
        for pattern in ["**/*.py", *data]:
            for source in (TREE / package).glob(pattern):
                if source.is_file() and "__pycache__" not in source.parts:
                    target = lib / source.relative_to(TREE)
                    target.parent.mkdir(parents=True, exist_ok=True)
                    shutil.copyfile(source, target)
    metadata = lib / f"mcfd-{version}.dist-info" / "METADATA"
    metadata.parent.mkdir()
    metadata.write_text(f"Metadata-Version: 2.1\nName: mcfd\nVersion: {version}\n", encoding="utf-8")


def compile_modules(lib: Path) -> None:
    """Byte code that is used without asking the source's time: the daemon cannot write any, and a small box compiles slowly."""
    done = compileall.compile_dir(
        lib,
        quiet=1,
        rx=re.compile(r"/faker/"),  # a dependency's dependency that no start imports, a third of all modules
        stripdir=str(lib),
        prependdir=f"/{LIB}",
        invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH,
    )
    if not done:
        sys.exit("mcfd: a module could not be compiled")


def install_files(root: Path) -> None:
    for source, target in FILES.items():
        path = root / target
        path.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(TREE / source, path)


def settle(root: Path, epoch: int) -> None:
    """One time for all, and modes that do not depend on the builder's umask."""
    for path in [root, *root.rglob("*")]:
        path.chmod(0o755 if path.is_dir() or path.stat().st_mode & 0o100 else 0o644)
        os.utime(path, (epoch, epoch))


def write_control(root: Path, version: str, arch: str) -> None:
    control = root / "DEBIAN"
    files = sorted(path for path in root.rglob("*") if path.is_file())
    control.mkdir()
    size = sum(-(-path.stat().st_size // 1024) for path in files)
    text = (HERE / "control.in").read_text(encoding="utf-8")
    for name, value in (("VERSION", version), ("ARCH", arch), ("SIZE", str(size))):
        text = text.replace(f"@{name}@", value)
    (control / "control").write_text(text, encoding="utf-8")
    sums = [f"{hashlib.md5(path.read_bytes()).hexdigest()}  {path.relative_to(root)}\n" for path in files]  # noqa: S324  # dpkg's format
    (control / "md5sums").write_text("".join(sums), encoding="utf-8")
    conffiles = [f"/{target}\n" for target in FILES.values() if target.startswith("etc/")]
    (control / "conffiles").write_text("".join(conffiles), encoding="utf-8")
    for script in SCRIPTS:
        shutil.copy(HERE / "maintainer" / script, control / script)


def build(version: str, output: Path, project: dict[str, object]) -> Path:
    arch = run("dpkg", "--print-architecture")
    epoch = source_date_epoch()
    package = output / f"mcfd_{version}_{arch}.deb"
    output.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="mcfd-deb-") as scratch:
        root = Path(scratch) / "root"
        lib = root / LIB
        lib.mkdir(parents=True)
        install_libraries(lib)
        install_packages(lib, project, version)
        compile_modules(lib)
        install_files(root)
        write_control(root, version, arch)
        settle(root, epoch)
        os.environ["SOURCE_DATE_EPOCH"] = str(epoch)
        # Level 3 is a third of the time of 6 and a tenth more bytes; one thread, as more could cut the stream elsewhere.
        run("dpkg-deb", "--root-owner-group", "-Zxz", "-z3", "--threads-max=1", "--build", root, package)
    return package


def main() -> None:
    if sys.version_info[:2] != PYTHON:
        sys.exit(
            "mcfd: Debian 12 has Python 3.11 and compiled libraries fit one Python only; try make PYTHON=python3.11"
        )
    if shutil.which("dpkg-deb") is None:
        sys.exit("mcfd: dpkg-deb is missing; a package for Debian is built on Debian")
    project = tomllib.loads((TREE / "pyproject.toml").read_text(encoding="utf-8"))
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--version", default=project["project"]["version"])
    parser.add_argument("--output", type=Path, default=TREE / "dist")
    arguments = parser.parse_args()
    package = build(arguments.version, arguments.output, project)
    size = run("dpkg-deb", "--field", package, "Installed-Size")
    sys.stdout.write(f"{package}  ({package.stat().st_size // 1024} KiB, {int(size) // 1024} MiB installed)\n")


if __name__ == "__main__":
    main()
