"""What the configuration refers to."""

from __future__ import annotations

from collections.abc import Iterator

from daemon.doctor import wording
from daemon.doctor.finding import Finding, fail, ok, warn
from daemon.settings import Settings, secret_path
from daemon.settings.check import secret_files
from daemon.upstream.options import BadOptions
from daemon.upstream.signing import read_keys

OTHERS = 0o077


def check_secrets(settings: Settings) -> Iterator[Finding]:
    """Readable by their owner alone, and the ones that sign are keys."""
    found = []
    for at, path in secret_files(settings):
        file = secret_path(path)
        if file.stat().st_mode & OTHERS:
            found.append(warn("secrets", wording.SECRET_OPEN(file=file, key=at), wording.SECRET_ADVICE(file=file)))
    upstream = settings.upstream
    if upstream is not None and upstream.kind == "https":
        try:
            read_keys([secret_path(path) for path in (upstream.secret_file, upstream.key_file) if path])
        except BadOptions as error:
            found.append(fail("secrets", error, wording.SECRET_BAD))
    yield from found or [ok("secrets", wording.SECRETS_FINE)]
