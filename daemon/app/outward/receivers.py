"""Who closures and events are sent to, opened as the configuration says."""

from __future__ import annotations

from common.files import secret_path
from daemon.settings import Upstream
from daemon.settings.model import Webhook
from daemon.upstream.options import BadOptions, Options, UpstreamReceiver, open_receiver


def headquarters(upstream: Upstream) -> UpstreamReceiver:
    """BadOptions when it cannot be opened as configured."""
    files = [path for path in (upstream.secret_file, upstream.key_file) if path is not None]
    options = Options(
        url=upstream.url,
        key_files=tuple(secret_path(path) for path in files),
        credentials_file=None if upstream.credentials_file is None else secret_path(upstream.credentials_file),
        tls_ca=upstream.tls_ca,
        subject_prefix=upstream.subject_prefix,
        allow_plain=upstream.allow_plain_http,
        receipt=upstream.receipt,
    )
    return open_receiver(upstream.kind, options)


def webhook_receiver(number: int, webhook: Webhook) -> UpstreamReceiver:
    """`number` names the section when BadOptions is raised."""
    from daemon.upstream.webhook import open_webhook  # noqa: PLC0415  # with its HTTP client: most boxes have no webhook

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
