"""Headquarters behind a URL: one signed POST per closure (Standard Webhooks headers, CloudEvents body). Also webhooks
for events, signed twice: by Standard Webhooks, and for clients of the hosted service as `X-Avepay-Signature:
sha256=<hex>`, the HMAC-SHA256 of the raw body with the secret as in its file."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import hmac
import ssl
import time
import uuid
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import partial

import httpx

from common.language import NO_TEXT, tr
from common.language.reasons import CONNECTION_FAILED, NO_REPLY_IN_SECONDS
from common.sockets import is_loopback
from common.wire.closure import CONTENT_TYPE
from common.wire.keys import SHARED, SharedKey, SigningKey
from common.wire.presence import CONTENT_TYPE as PRESENCE_TYPE
from common.wire.presence import PresenceAnswer, read_answer
from common.wire.signing import is_receipt, sign
from daemon.core.delivery import Delivery, RetryLater
from daemon.upstream.options import (
    BadOptions,
    Options,
    certificate_fault,
    connection_fault,
    parse_key,
    read_keys,
    read_text,
    signing_time,
    tls_context,
    verdict,
)

JSON = {"content-type": PRESENCE_TYPE}
ANSWER_LIMIT = 16 * 1024
EXCERPT = 200
KEEPALIVE = 10
"""Idle connections for the next request."""

JSON_TYPE = "application/json"
SIGNATURE = "x-avepay-signature"
LEAST_TEXT = 16
"""Minimum bytes of a secret other than `whsec_…`, as clients of the hosted service have made their own."""


def open_receiver(options: Options) -> HttpsReceiver:
    url = check_url(options)
    keys = read_keys(options.key_files)
    if not keys:
        raise BadOptions("upstream: kind https needs secret_file or key_file: events are signed")
    tls = tls_context(options.tls_ca, is_used=url.scheme == "https")
    return HttpsReceiver(options.url, keys, tls=tls, timeout=options.timeout, receipt=options.receipt)


class HttpsReceiver:
    def __init__(
        self,
        url: str,
        keys: Sequence[SigningKey],
        *,
        tls: ssl.SSLContext,
        timeout: float,
        content_type: str = CONTENT_TYPE,
        beside: Callable[[bytes], Mapping[str, str]] = lambda _: {},
        receipt: bool = False,
    ) -> None:
        """`beside` returns further headers for a body, besides the signature's."""
        self._url = url
        self._presence_url = httpx.URL(url).join("presence")
        self._keys = keys
        self.key_id = keys[0].id
        self._timeout = timeout
        self._beside = beside
        self._receipt = receipt
        self._open = partial(
            httpx.AsyncClient,
            verify=tls,
            trust_env=False,  # no proxy or certificate from the environment
            follow_redirects=False,
            timeout=timeout,
            limits=httpx.Limits(max_keepalive_connections=KEEPALIVE),
            # No compression, so that a few bytes cannot unpack to a few gigabytes.
            headers={"user-agent": "mcfd", "accept-encoding": "identity", "content-type": content_type},
        )
        self._client = self._open()
        self._requests: Counter[httpx.AsyncClient] = Counter()

    async def deliver(
        self, event: bytes, *, report_id: str, subject: str, nim: str, since: int = 0, last_sent: int = 0
    ) -> Delivery:
        """`since`: time of the event in ms. A box whose clock has lost the date signs with that time, not with 1970."""
        del subject, nim, last_sent  # the event has the first two, and the receiver recognises it by its id
        # A box without a clock battery may be minutes off and corrected meanwhile: sign each try again.
        at = signing_time(time.time(), since)
        headers = {**sign(self._keys, report_id, at, event), **self._beside(event)}
        answer: httpx.Response | None = None
        received = bytearray()
        error = NO_TEXT
        try:
            async with (
                asyncio.timeout(self._timeout),
                self._post(self._url, event, headers) as answer,
            ):
                await _read(answer, received)
        except TimeoutError:
            error = NO_REPLY_IN_SECONDS(seconds=f"{self._timeout:g}")
        except (httpx.HTTPError, OSError) as trouble:
            error = certificate_fault(trouble) or CONNECTION_FAILED(cause=connection_fault(trouble))
        if answer is None:
            return RetryLater(error)
        # The status decides, even if the rest of the answer was slow, endless or cut off.
        has_receipt = not self._receipt or is_receipt(bytes(received), report_id, event)
        return verdict(answer.status_code, _excerpt(received), _retry_after(answer.headers), has_receipt=has_receipt)

    async def announce(self, presence: bytes, *, nim: str) -> PresenceAnswer | None:
        """Posts to `presence` beside the closures' URL. None on any error: the next one follows in five minutes."""
        del nim  # the presence has it
        headers = sign(self._keys, str(uuid.uuid4()), int(time.time()), presence)
        received = bytearray()
        try:
            async with (
                asyncio.timeout(self._timeout),
                self._post(self._presence_url, presence, {**headers, **JSON}) as answer,
            ):
                await _read(answer, received)
        except (TimeoutError, httpx.HTTPError, OSError):
            return None
        return read_answer(bytes(received)) if answer.is_success else None

    @contextlib.asynccontextmanager
    async def _post(
        self, url: httpx.URL | str, content: bytes, headers: Mapping[str, str]
    ) -> AsyncIterator[httpx.Response]:
        """An abandoned request also abandons its client: a pool of httpcore can keep its connection for ever (httpcore
        issue 1093). Its last user closes it: a pool closed earlier keeps the connection of a request that connects."""
        client = self._client
        self._requests[client] += 1
        try:
            async with client.stream("POST", url, content=content, headers=headers) as answer:
                yield answer
        except BaseException:
            if self._client is client:
                self._client = self._open()
            raise
        finally:
            self._requests[client] -= 1
            if self._client is not client and not self._requests[client]:
                del self._requests[client]
                await client.aclose()

    async def trial(self, event: bytes, *, event_id: str, nim: str) -> Delivery:
        return await self.deliver(event, report_id=event_id, subject="", nim=nim)

    async def aclose(self) -> None:
        await self._client.aclose()


def _retry_after(headers: httpx.Headers) -> float | None:
    """Seconds. A date is relative to the answer's own Date: the box's clock may be off."""
    value = headers.get("retry-after", "").strip()
    if value.isascii() and value.isdigit():
        return float(value)
    try:
        then = parsedate_to_datetime(value)
        answered = parsedate_to_datetime(headers["date"]) if "date" in headers else datetime.now(UTC)
        return max(0.0, (then - answered).total_seconds())
    except (ValueError, TypeError, OverflowError):  # no date; one without a zone; a year of forty digits
        return None


async def _read(answer: httpx.Response, received: bytearray) -> None:
    async for chunk in answer.aiter_raw():
        received += chunk
        if len(received) > ANSWER_LIMIT:
            break


def _excerpt(received: bytes | bytearray) -> str:
    text = " ".join(received[:ANSWER_LIMIT].decode("utf-8", "replace").split())
    return "".join(c for c in text if c.isprintable())[:EXCERPT]


def check_url(options: Options) -> httpx.URL:
    try:
        url = httpx.URL(options.url)
    except httpx.InvalidURL as error:
        raise BadOptions(f"{options.section}.url: {error}") from None
    if url.scheme not in ("http", "https") or not url.host:
        raise BadOptions(f"{options.section}.url: kind https needs https://…")
    if url.userinfo:
        raise BadOptions(f"{options.section}.url: no user or password in it: events are signed")
    if url.scheme == "http" and not (options.allow_plain or is_loopback(url.host)):
        raise BadOptions(f"{options.section}.url: plain http beyond loopback needs allow_plain_http = true")
    return url


def open_webhook(options: Options) -> HttpsReceiver:
    """`options.key_files` is the one file of the secret. Raises BadOptions if the configuration does not work."""
    url = check_url(options)
    (path,) = options.key_files
    where = f"{options.section}.secret_file"
    secret = read_text(path, where, "utf-8")
    if not secret or "\n" in secret:
        raise BadOptions(tr("{where} {path}: one line is needed", where=where, path=path))

    def beside(body: bytes) -> Mapping[str, str]:
        return {SIGNATURE: "sha256=" + hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()}

    return HttpsReceiver(
        options.url,
        [standard_key(secret, f"{where} {path}")],
        tls=tls_context(options.tls_ca, is_used=url.scheme == "https", section=options.section),
        timeout=options.timeout,
        content_type=JSON_TYPE,
        beside=beside,
        receipt=options.receipt,
    )


def standard_key(secret: str, where: str) -> SigningKey:
    """A secret other than `whsec_…` signs as plain text; `where` is for BadOptions."""
    if secret.startswith(SHARED):
        return parse_key(secret, where)
    if len(secret.encode()) < LEAST_TEXT:
        raise BadOptions(tr("{where}: shorter than {least} bytes, which can be guessed", where=where, least=LEAST_TEXT))
    return SharedKey(secret.encode())
