"""What a server of ours offers by TLS."""

from __future__ import annotations

import ssl
from typing import Final

STRONG: Final = "ECDHE+AESGCM:ECDHE+CHACHA20"
"""Of TLS 1.2, what has forward secrecy and authenticates what it encrypts; all of TLS 1.3 has both."""


def offer_strong_alone(context: ssl.SSLContext) -> None:
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_ciphers(STRONG)
