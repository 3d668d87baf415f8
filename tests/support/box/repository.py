"""A signed apt repository, made as `make repository` does, with a key that is thrown away."""

import functools
import os
import subprocess
from pathlib import Path

from support.box.cache import scratch
from support.box.package import TREE
from support.tools import need


@functools.cache
def secret_key(name: str = "release") -> Path:
    need("gpg", "gpgconf", "apt-ftparchive")
    home = scratch() / f"gpg-{name}-{os.getpid()}"
    home.mkdir(mode=0o700)
    gpg = ["gpg", "--batch", "--quiet", "--homedir", str(home)]
    # Of last year, so that signatures may be dated either way.
    old = ["--faked-system-time", "20250101T000000"]
    who = f"{name} <{name}@example.org>"
    subprocess.run(
        [*gpg, *old, "--passphrase", "", "--quick-generate-key", who, "ed25519", "sign", "never"], check=True
    )
    path = home / "secret.asc"
    path.write_bytes(
        subprocess.run([*gpg, "--armor", "--export-secret-keys"], check=True, stdout=subprocess.PIPE).stdout
    )
    subprocess.run(["gpgconf", "--homedir", str(home), "--kill", "all"], check=True)
    return path


def publish(folder: Path, *packages: Path, url: str, key: Path | None = None, at: int | None = None) -> None:
    """`packages` (else those that are there) into `folder`, which boxes find under `url`; dated `at` (seconds since 1970), else now."""
    environment = {**os.environ, **({"SOURCE_DATE_EPOCH": str(at)} if at else {})}
    wanted = packages or sorted((folder / "pool").glob("*.deb"))
    done = subprocess.run(
        [TREE / "packaging/repository", folder, key or secret_key(), url, *wanted],
        env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout
