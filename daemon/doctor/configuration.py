"""What the configuration refers to."""

from __future__ import annotations

from collections.abc import Iterator

from common.credentials import secret_path
from common.language import tr
from daemon.doctor.finding import CheckResult, fail, ok, warn
from daemon.settings import Settings
from daemon.settings.check import secret_files
from daemon.upstream.options import BadOptions
from daemon.upstream.signing import read_keys

OTHERS = 0o077


def check_secrets(settings: Settings) -> Iterator[CheckResult]:
    """Readable by their owner alone, and the ones that sign are keys."""
    found = []
    for at, path in secret_files(settings):
        file = secret_path(path)
        if file.stat().st_mode & OTHERS:
            found.append(
                warn(
                    "secrets",
                    tr("{file} ({key}) can be read by others", file=file, key=at),
                    tr("sudo chmod 600 {file}", file=file),
                )
            )
    upstream = settings.upstream
    if upstream is not None:
        try:
            read_keys([secret_path(path) for path in (upstream.secret_file, upstream.key_file) if path])
        except BadOptions as error:
            found.append(
                fail(
                    "secrets",
                    error,
                    tr("put back the secret that headquarters gave (one line whsec_…), or mcfd upstream keygen"),
                )
            )
    yield from found or [ok("secrets", tr("readable by their owner alone"))]
