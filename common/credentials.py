"""Secrets stay in their files until the moment they are needed; here is where such a file is looked for."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

LARGEST = 64 * 1024


def secret_path(path: Path, environ: Mapping[str, str] = os.environ) -> Path:
    """The file itself, or the systemd credential that stands for it.

    Under `LoadCredential=upstream.secret:…` the credential has the file's name; where a whole directory
    is loaded, systemd calls it `<id>_<name>`, and the id is taken to be the directory's name.
    """
    if directory := environ.get("CREDENTIALS_DIRECTORY"):
        for name in (path.name, f"{path.parent.name}_{path.name}"):
            credential = Path(directory, name)
            if credential.is_file():
                return credential
    return path


def read_secret(path: Path, environ: Mapping[str, str] = os.environ) -> bytes:
    """The content without surrounding white space; OSError as it comes."""
    with secret_path(path, environ).open("rb") as file:
        return file.read(LARGEST).strip()
