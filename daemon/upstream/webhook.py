"""A webhook for events: signed twice, as Standard Webhooks wants it and as clients of the hosted service verify it.

`X-Avepay-Signature: sha256=<hex>` is HMAC-SHA256 of the raw body with the secret as it stands in the file."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from pathlib import Path

from common.wire.keys import SHARED, SharedKey, SigningKey
from daemon.upstream.https import HttpsReceiver, check_url
from daemon.upstream.options import BadOptions, Options, parse_key, tls_context

CONTENT_TYPE = "application/json"
SIGNATURE = "x-avepay-signature"
LEAST_TEXT = 16
"""Bytes of a secret that is not a `whsec_…`: clients of the hosted service have made their own so far."""


def open_webhook(options: Options) -> HttpsReceiver:
    """`options.key_files` is the one file of the secret. BadOptions when it cannot be opened as configured."""
    url = check_url(options)
    (path,) = options.key_files
    secret = read_secret(path)

    def beside(body: bytes) -> Mapping[str, str]:
        return {SIGNATURE: "sha256=" + hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()}

    return HttpsReceiver(
        options.url,
        [standard_key(secret, path)],
        tls=tls_context(options.tls_ca, is_used=url.scheme == "https"),
        timeout=options.timeout,
        content_type=CONTENT_TYPE,
        beside=beside,
        receipt=options.receipt,
    )


def read_secret(path: Path) -> str:
    """The one line of the file."""
    try:
        lines = path.read_text("utf-8").split("\n")
    except OSError as error:
        raise BadOptions(f"webhook secret {path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise BadOptions(f"webhook secret {path}: not text") from None
    found = [line.strip() for line in lines if line.strip()]
    if len(found) != 1:
        raise BadOptions(f"webhook secret {path}: one line is needed")
    return found[0]


def standard_key(secret: str, path: Path) -> SigningKey:
    """A secret that is not written as `whsec_…` signs as the text that it is."""
    if secret.startswith(SHARED):
        return parse_key(secret, str(path))
    if len(secret.encode()) < LEAST_TEXT:
        raise BadOptions(f"webhook secret {path}: shorter than {LEAST_TEXT} bytes, which can be guessed")
    return SharedKey(secret.encode())
