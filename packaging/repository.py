# ruff: noqa: INP001 -- a script, run by `make repository`; a package of this name would hide PyPI's `packaging`
"""Writes a signed apt repository: `repository.py DIR --key KEY [--url URL] [PACKAGE…]`, for a web server or a USB stick.

    DIR/pool/mcfd_<version>_<arch>.deb        every version that was ever put there
    DIR/dists/stable/…                        what apt reads, signed; the index of each version by its hash too
    DIR/mcfd.sources                          for /etc/apt/sources.list.d/, with the public key in it

Packages come first and the signed index last, each put in place whole: a stick that is pulled out, or a client that reads
meanwhile, has the repository from before. There is no end of validity: a box that sees the internet once a year is a
box in good order. What a signature cannot say, that this is the newest version, the box does not believe either: apt never
goes back by itself.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from email.utils import formatdate
from pathlib import Path

TREE = Path(__file__).resolve().parent.parent
SUITE = "stable"
ARCHITECTURES = ("amd64", "arm64")
SOURCES = """\
# mcfd's own packages. Copy to /etc/apt/sources.list.d/mcfd.sources.
Types: deb
URIs: {url}
Suites: {suite}
Components: main
# A box without a battery for its clock is behind until the network tells the time; an index from its future is no reason
# to refuse it. The signature counts.
Check-Date: no
Signed-By:
{key}
"""


def run(*command: str | Path, **options: str | Path) -> str:
    words = [str(word) for word in command]
    done = subprocess.run(words, check=True, text=True, stdout=subprocess.PIPE, **options)  # type: ignore[call-overload]  # noqa: S603  # our own commands
    return str(done.stdout)


class Key:
    """A secret key: one in a file, imported for this run only, or one of the caller's own keyring.

    Signatures bear the date of the key, not of the day. What verifies them on Debian 13 (sqv) refuses one from the box's future,
    whatever `Check-Date` says; the index has its true date inside, which apt compares.
    """

    def __init__(self, home: Path | None, name: str) -> None:
        self._gpg = ["gpg", "--batch", "--quiet", *(["--homedir", str(home)] if home else [])]
        self._name = name
        listed = run(*self._gpg, "--list-secret-keys", "--with-colons", name).splitlines()
        made = [int(line.split(":")[5]) for line in listed if line.startswith(("sec:", "ssb:"))]
        if not made:
            sys.exit(f"mcfd: there is no secret key {name}")
        self._moment = f"--faked-system-time={max(made) + 1}"

    def sign(self, text: Path, clear: Path, detached: Path) -> None:
        for target, how in ((clear, "--clear-sign"), (detached, "--detach-sign")):
            armor = ["--armor"] if target is detached else []
            command = [
                *self._gpg,
                self._moment,
                *armor,
                "--local-user",
                self._name,
                "--output",
                str(target),
                how,
                str(text),
            ]
            done = subprocess.run(command, text=True, stderr=subprocess.PIPE, check=False)  # noqa: S603  # gpg, as above
            if done.returncode:
                sys.exit(f"mcfd: gpg does not sign: {done.stderr.strip()}")

    def public(self) -> str:
        return run(*self._gpg, "--armor", "--export", self._name)


@contextmanager
def key(given: str) -> Iterator[Key]:
    if not Path(given).is_file():
        yield Key(None, given)
        return
    with tempfile.TemporaryDirectory(prefix="mcfd-key-") as scratch:
        home = Path(scratch)
        home.chmod(0o700)
        run("gpg", "--batch", "--quiet", "--homedir", home, "--import", given)
        listed = run("gpg", "--batch", "--homedir", home, "--list-secret-keys", "--with-colons").splitlines()
        prints = [line.split(":")[9] for line in listed if line.startswith("fpr:")]
        if not prints:
            sys.exit(f"mcfd: {given} holds no secret key")
        try:
            yield Key(home, prints[0])
        finally:
            subprocess.run(["gpgconf", "--homedir", str(home), "--kill", "all"], check=False)  # noqa: S603, S607  # its agent


def put(source: Path, target: Path) -> None:
    """Whole or not at all, and on the disk (or the stick) before anything names it."""
    target.parent.mkdir(parents=True, exist_ok=True)
    half = target.with_name(f".{target.name}.half")
    shutil.copyfile(source, half)
    with half.open("rb") as written:
        os.fsync(written.fileno())
    half.replace(target)


def index(pool: Path, scratch: Path) -> Path:
    """The tree of `dists/stable`, unsigned, in `scratch`."""
    suite = scratch / SUITE
    for arch in ARCHITECTURES:
        folder = suite / f"main/binary-{arch}"
        (folder / "by-hash/SHA256").mkdir(parents=True)
        text = run("apt-ftparchive", "--arch", arch, "packages", "pool", cwd=pool.parent).encode()
        for name, content in (("Packages", text), ("Packages.gz", gzip.compress(text, 9, mtime=0))):
            (folder / name).write_bytes(content)
            (folder / "by-hash/SHA256" / hashlib.sha256(content).hexdigest()).write_bytes(content)
    fields = {"Origin": "mcfd", "Label": "mcfd", "Suite": SUITE, "Codename": SUITE, "Components": "main",
              "Architectures": " ".join(ARCHITECTURES), "Acquire-By-Hash": "yes"}  # fmt: skip
    options = [f"-oAPT::FTPArchive::Release::{name}={value}" for name, value in fields.items()]
    release = run("apt-ftparchive", *options, "release", suite)
    lines = [line for line in release.splitlines() if "by-hash" not in line and not line.startswith("Date:")]
    moment = os.environ.get("SOURCE_DATE_EPOCH")
    lines.insert(0, f"Date: {formatdate(float(moment) if moment else None, usegmt=True)}")
    (suite / "Release").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return suite


def publish(folder: Path, packages: list[Path], secret: Key, url: str) -> None:
    pool = folder / "pool"
    pool.mkdir(parents=True, exist_ok=True)
    for package in packages:
        target = pool / package.name
        if target.exists() and target.read_bytes() != package.read_bytes():
            sys.exit(f"mcfd: {target} is there with other contents; a version is published once")
        put(package, target)
    with tempfile.TemporaryDirectory(prefix="mcfd-repository-") as scratch:
        suite = index(pool, Path(scratch))
        secret.sign(suite / "Release", suite / "InRelease", suite / "Release.gpg")
        # The signed files last, and InRelease, which apt asks for first, at the very end.
        signed = ["Release", "Release.gpg", "InRelease"]
        files = sorted(path for path in suite.rglob("*") if path.is_file() and path.name not in signed)
        for path in [*files, *(suite / name for name in signed)]:
            put(path, folder / "dists" / SUITE / path.relative_to(suite))
        block = "".join(f" {line or '.'}\n" for line in secret.public().splitlines()).rstrip("\n")
        sources = Path(scratch) / "mcfd.sources"
        values = {"url": url, "suite": SUITE, "key": block}
        sources.write_text(SOURCES.format(**values), encoding="utf-8")
        put(sources, folder / "mcfd.sources")
    os.sync()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, metavar="DIR")
    parser.add_argument("packages", type=Path, nargs="*", help="else those of dist/")
    parser.add_argument("--key", required=True, help="a file with a secret key, or a key of your keyring")
    parser.add_argument("--url", help="where boxes will find DIR; else DIR itself (file:)")
    arguments = parser.parse_args()
    for tool in ("apt-ftparchive", "gpg"):
        if shutil.which(tool) is None:
            sys.exit(f"mcfd: {tool} is missing; apt-get install apt-utils gnupg")
    packages = arguments.packages or sorted((TREE / "dist").glob("mcfd_*.deb"))
    if not packages:
        sys.exit("mcfd: no package to publish; make deb")
    with key(arguments.key) as secret:
        publish(arguments.folder, packages, secret, arguments.url or f"file:{arguments.folder.resolve()}")
    sys.stdout.write(f"{arguments.folder}: {', '.join(package.name for package in packages)}\n")


if __name__ == "__main__":
    main()
