# ruff: noqa: INP001 -- a script, run by `make image`; a package of this name would hide PyPI's `packaging`
"""A container image of mcfd on a simulated machine, for developers of tills: `image.py [PACKAGE]`, as root. Not for a shop.

A small Debian with the files of the package in it (none of its units: a container has no systemd), as `dist/mcfd-demo_<version>_<arch>.oci.tar`,
for podman and docker alike. Wants mmdebstrap and buildah.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

TREE = Path(__file__).resolve().parent.parent
DIST = TREE / "dist"
SUITE = "trixie"
USER = "10480"
# Nothing of it is read in a container.
LEFT_OUT = ("/usr/share/man/*", "/usr/share/doc/*", "/usr/share/locale/*", "/usr/share/info/*")


def run(*command: str | Path, **environment: str) -> str:
    words = [str(word) for word in command]
    done = subprocess.run(  # noqa: S603  # our own commands
        words, text=True, capture_output=True, env=os.environ | environment, check=False
    )
    if done.returncode:
        sys.exit(f"mcfd: {words[0]} ended with {done.returncode}\n{done.stderr[-3000:]}")
    return done.stdout.strip()


def mirror() -> str:
    """Where this machine's own apt gets Debian from."""
    targets = run("apt-get", "indextargets", "--format", "$(LABEL) $(REPO_URI)", "Created-By: Packages")
    return next(line.split()[-1] for line in targets.splitlines() if line.startswith("Debian "))


def files(package: Path, archive: Path, epoch: str) -> None:
    """The image's one layer."""
    hooks = (
        f'dpkg-deb --extract "{package}" "$1"',
        'chroot "$1" python3 -IS /usr/share/mcfd/compile_modules.py /usr/lib/mcfd',
        f'install -D -m 0755 "{TREE / "packaging/image/start.py"}" "$1/usr/share/mcfd/start.py"',
        f'install -d -o {USER} -g {USER} -m 0750 "$1/var/lib/mcfd"',
        'rm -rf "$1/var/lib/apt/lists" "$1/var/cache/apt" "$1/usr/lib/systemd"',
    )
    run("mmdebstrap", "--variant=minbase", "--include=haproxy,python3,tzdata",
        *(f"--dpkgopt=path-exclude={path}" for path in LEFT_OUT),
        *(f"--customize-hook={hook}" for hook in hooks),
        SUITE, archive, mirror(), SOURCE_DATE_EPOCH=epoch)  # fmt: skip


def image(archive: Path, target: Path, version: str, epoch: str) -> None:
    # Its own way of copying files: no overlay file system is needed.
    buildah = ("buildah", "--storage-driver", "vfs")
    container = run(*buildah, "from", "scratch")
    try:
        run(*buildah, "add", container, archive, "/")
        run(*buildah, "config", "--entrypoint", '["/usr/bin/python3", "/usr/share/mcfd/start.py"]', "--user", f"{USER}:{USER}",
            "--port", "8480/tcp", "--volume", "/var/lib/mcfd", "--workingdir", "/var/lib/mcfd", "--env", "LANG=C.UTF-8",
            "--label", "org.opencontainers.image.title=mcfd-demo",
            "--label", f"org.opencontainers.image.version={version}",
            "--label", "org.opencontainers.image.licenses=Apache-2.0",
            "--label", "org.opencontainers.image.description=mcfd on a simulated fiscal machine, for developers of tills",
            container)  # fmt: skip
        target.unlink(missing_ok=True)
        name = run(*buildah, "commit", "--quiet", "--timestamp", epoch, container)
        run(*buildah, "push", "--quiet", name, f"oci-archive:{target}:mcfd-demo:{version}")
        run(*buildah, "rmi", "--force", name)
    finally:
        run(*buildah, "rm", container)


def main() -> None:
    version = tomllib.loads((TREE / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    arch = run("dpkg", "--print-architecture")
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("package", type=Path, nargs="?", default=DIST / f"mcfd_{version}_{arch}.deb")
    package = parser.parse_args().package.resolve()
    if os.geteuid() != 0:
        sys.exit("mcfd: a Debian tree is made by root only")
    for tool in ("mmdebstrap", "buildah"):
        if shutil.which(tool) is None:
            sys.exit(f"mcfd: {tool} is missing; apt-get install mmdebstrap buildah")
    if not package.exists():
        sys.exit(f"mcfd: {package} is not there; make deb")
    target = DIST / f"mcfd-demo_{version}_{arch}.oci.tar"
    epoch = os.environ.get("SOURCE_DATE_EPOCH") or run("git", "-C", TREE, "log", "-1", "--format=%ct")
    with tempfile.TemporaryDirectory(prefix="mcfd-image-") as scratch:
        archive = Path(scratch) / "tree.tar"
        files(package, archive, epoch)
        image(archive, target, version, epoch)
    sys.stdout.write(f"{target}  ({target.stat().st_size // 1_000_000} MB)\n")


if __name__ == "__main__":
    main()
