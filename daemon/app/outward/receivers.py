"""Who closures and events are sent to, opened as the configuration says."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from common.files import secret_path
from daemon.settings import Settings, Upstream
from daemon.settings.model import Webhook
from daemon.settings.source import is_joined
from daemon.upstream.options import BadOptions, Options, UpstreamReceiver, no_keys, open_receiver

if TYPE_CHECKING:
    from daemon.upstream.nats import NatsReceiver


def headquarters(
    upstream: Upstream, lane_keys: Callable[[str], Sequence[str]] = no_keys, nims: Sequence[str] = ()
) -> UpstreamReceiver:
    """BadOptions when it cannot be opened as configured."""
    return open_receiver(upstream.kind, _options(upstream, lane_keys, nims))


def subject_names(settings: Settings) -> tuple[str, ...]:
    """Of its machines, what the box may call them at NATS: as it joined; where its credentials were made by hand, the whole NIM."""
    return tuple(machine.nim for machine in settings.machine if "-" in machine.nim or is_joined(settings))


def calls(upstream: Upstream, lane_keys: Callable[[str], Sequence[str]], nims: Sequence[str]) -> NatsReceiver | None:
    """Where the calls of the relay come from; None where headquarters is none of NATS."""
    from daemon.upstream import nats  # noqa: PLC0415  # where it is configured

    return nats.open_receiver(_options(upstream, lane_keys, nims)) if upstream.kind == "nats" else None


def _options(upstream: Upstream, lane_keys: Callable[[str], Sequence[str]], nims: Sequence[str]) -> Options:
    files = [path for path in (upstream.secret_file, upstream.key_file) if path is not None]
    return Options(
        url=upstream.url,
        key_files=tuple(secret_path(path) for path in files),
        credentials_file=None if upstream.credentials_file is None else secret_path(upstream.credentials_file),
        tls_ca=upstream.tls_ca,
        subject_prefix=upstream.subject_prefix,
        allow_plain=upstream.allow_plain_http,
        receipt=upstream.receipt,
        lane_keys=lane_keys,
        nims=tuple(nims),
    )


def webhook_receiver(number: int, webhook: Webhook) -> UpstreamReceiver:
    """`number` names the section when BadOptions is raised."""
    from daemon.upstream.https import open_webhook  # noqa: PLC0415  # with its HTTP client: most boxes have no webhook

    options = Options(
        url=webhook.url,
        key_files=(secret_path(webhook.secret_file),),
        tls_ca=webhook.tls_ca,
        allow_plain=webhook.allow_plain_http,
        receipt=webhook.receipt,
    )
    try:
        return open_webhook(options)
    except BadOptions as error:
        raise BadOptions(f"webhook[{number}]: {error}") from None
