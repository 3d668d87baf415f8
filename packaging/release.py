# ruff: noqa: INP001 -- a script, run by `make release`; a package of this name would hide PyPI's `packaging`
"""A release, in order, and what was done: `make release KEY=release-key.asc [URL=…]`. The first step that fails ends it.

`--only STEP` (may be repeated) tries single steps; what is left out is said at the end, and such a run is no release.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import records
from libraries import ARCHITECTURES, TREE

DIST = TREE / "dist"
PACKAGING = TREE / "packaging"


def run(*command: str | Path, cwd: Path = TREE, umask: int = -1, **environment: str) -> str:
    words = [str(word) for word in command]
    done = subprocess.run(  # noqa: S603  # our own commands
        words, cwd=cwd, umask=umask, env=os.environ | environment, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False,
    )  # fmt: skip
    if done.returncode:
        raise SystemExit(f"mcfd: {' '.join(words)} ended with {done.returncode}\n{done.stdout[-4000:]}")
    return done.stdout


@dataclass(frozen=True)
class Release:
    version: str
    key: str
    url: str

    @property
    def packages(self) -> list[Path]:
        return [DIST / f"mcfd_{self.version}_{arch}.deb" for arch in ARCHITECTURES]

    def agree(self) -> str:
        """The tree is what was committed, and the version has its section in the changelog."""
        if changed := run("git", "status", "--porcelain").strip():
            raise SystemExit(f"mcfd: not committed:\n{changed}")
        records.agree(self.version)
        return f"{self.version}, commit {run('git', 'rev-parse', '--short', 'HEAD').strip()}"

    def build(self) -> str:
        """Twice, by builders who agree on the commit alone; and the bytes are the same."""
        epoch = run("git", "log", "-1", "--format=%ct").strip()
        with tempfile.TemporaryDirectory(prefix="mcfd-release-") as scratch:
            other = Path(scratch) / "another place"
            other.mkdir()
            archive = Path(scratch) / "tree.tar"
            run("git", "archive", "--output", archive, "HEAD")
            run("tar", "-xf", archive, "-C", other)
            script = Path("packaging/build_deb.py")
            wheels = TREE / "build/wheels"
            run(sys.executable, script, "--wheels", wheels, SOURCE_DATE_EPOCH=epoch)
            run(sys.executable, script, "--wheels", wheels, cwd=other, umask=0o077,
                SOURCE_DATE_EPOCH=epoch, TZ="Asia/Tokyo", LC_ALL="C", PYTHONHASHSEED="7")  # fmt: skip
            for package in self.packages:
                if package.read_bytes() != (other / "dist" / package.name).read_bytes():
                    raise SystemExit(f"mcfd: {package.name} differs from one builder to the other")
        return ", ".join(f"{package.name} {package.stat().st_size:,} bytes" for package in self.packages)

    def lintian(self) -> str:
        said = run(
            "lintian", "--pedantic", "--display-info", "--fail-on", "error,warning,info,pedantic", *self.packages
        )
        return f"{said.count('N:')} notes, nothing else"

    def boxes(self) -> str:
        """Debian 12 and 13, booted: install, upgrade, repository, Debian 12 upgraded to 13."""
        tests = sorted(str(path.relative_to(TREE)) for path in (TREE / "tests").rglob("test_package_*.py"))
        return run(sys.executable, "-m", "pytest", "-q", *tests, CI="1").strip().splitlines()[-1]

    def emulated(self) -> str:
        return run(sys.executable, PACKAGING / "emulated.py", DIST / f"mcfd_{self.version}_arm64.deb").strip()

    def repository(self) -> str:
        if not self.key:
            raise SystemExit("mcfd: a release is signed: make release KEY=…")
        url = ["--url", self.url] if self.url else []
        repository = PACKAGING / "repository.py"
        return run(sys.executable, repository, DIST / "repository", *self.packages, "--key", self.key, *url).strip()

    def sbom(self) -> str:
        """Each package's own list of libraries, beside it."""
        for package in self.packages:
            with tempfile.TemporaryDirectory(prefix="mcfd-sbom-") as scratch:
                run("dpkg-deb", "--extract", package, scratch)
                listed = Path(scratch) / "usr/share/doc/mcfd/mcfd.cdx.json"
                package.with_suffix(".cdx.json").write_bytes(listed.read_bytes())
        return ", ".join(package.with_suffix(".cdx.json").name for package in self.packages)

    def checksums(self) -> str:
        files = [path for package in self.packages for path in (package, package.with_suffix(".cdx.json"))]
        lines = [f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in files]
        (DIST / "SHA256SUMS").write_text("".join(lines), encoding="utf-8")
        return "".join(lines).strip()


STEPS: tuple[tuple[str, str], ...] = (
    ("agree", "version and changelog agree"),
    ("build", "both packages, twice, equal bytes"),
    ("lintian", "lintian, pedantic"),
    ("boxes", "booted boxes"),
    ("emulated", "arm64 under qemu"),
    ("repository", "signed repository"),
    ("sbom", "list of libraries"),
    ("checksums", "checksums"),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--key", default="", help="a file with a secret key, or a key of your keyring")
    parser.add_argument("--url", default="", help="where boxes will find the repository")
    parser.add_argument("--only", action="append", choices=[name for name, _ in STEPS])
    arguments = parser.parse_args()
    project = tomllib.loads((TREE / "pyproject.toml").read_text(encoding="utf-8"))
    release = Release(project["project"]["version"], arguments.key, arguments.url)
    left_out = [what for name, what in STEPS if arguments.only and name not in arguments.only]
    for name, what in STEPS:
        if what in left_out:
            continue
        began = time.monotonic()
        step: Callable[[], str] = getattr(release, name)
        sys.stdout.write(f"{what} …\n")
        sys.stdout.flush()
        said = step()
        sys.stdout.write("".join(f"    {line}\n" for line in said.splitlines()))
        sys.stdout.write(f"    done in {time.monotonic() - began:.0f} s\n")
    if left_out:
        sys.stdout.write(f"no release: left out {', '.join(left_out)}\n")
    else:
        sys.stdout.write(f"mcfd {release.version} is in {DIST}\n")


if __name__ == "__main__":
    main()
