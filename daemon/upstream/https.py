"""Headquarters behind a URL: one signed POST per closure (Standard Webhooks headers, CloudEvents body)."""

from __future__ import annotations

import asyncio
import ssl
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

import httpx

from daemon.core.delivery import Again, Delivered, Delivery, Refused
from daemon.upstream.event import CONTENT_TYPE
from daemon.upstream.options import BadOptions, Options, is_loopback, tls_context
from daemon.upstream.signing import Key, read_keys, sign

CONFLICT = 409
TRY_AGAIN = frozenset({408, 425, 429})
CLIENT_ERRORS = range(400, 500)
ANSWER_LIMIT = 16 * 1024
EXCERPT = 200


def open_receiver(options: Options) -> HttpsReceiver:
    check_url(options)
    keys = read_keys(options.key_files)
    if not keys:
        raise BadOptions("upstream: kind https needs secret_file or key_file: events are signed")
    return HttpsReceiver(options.url, keys, tls=tls_context(options.tls_ca), timeout=options.timeout)


class HttpsReceiver:
    def __init__(
        self,
        url: str,
        keys: Sequence[Key],
        *,
        tls: ssl.SSLContext,
        timeout: float,
        now: Callable[[], float] = time.time,
        content_type: str = CONTENT_TYPE,
        beside: Callable[[bytes], Mapping[str, str]] = lambda _: {},
    ) -> None:
        """`beside` gives headers of one body that go out beside the signature's own."""
        self._url = url
        self._keys = keys
        self._timeout = timeout
        self._now = now
        self._beside = beside
        # No proxy or certificate from the environment: what is configured is what happens. The answer comes
        # as it is, so that a few bytes cannot unpack to a few gigabytes.
        self._client = httpx.AsyncClient(
            verify=tls,
            trust_env=False,
            follow_redirects=False,
            timeout=timeout,
            headers={"user-agent": "mcfd", "accept-encoding": "identity", "content-type": content_type},
        )

    async def deliver(self, event: bytes, *, report_id: str, subject: str, nim: str) -> Delivery:
        del subject, nim  # the event says both
        # A box without a clock battery may be minutes off and be set right in between: sign each try afresh.
        headers = {**sign(self._keys, report_id, int(self._now()), event), **self._beside(event)}
        answer: httpx.Response | None = None
        text = error = ""
        try:
            async with (
                asyncio.timeout(self._timeout),
                self._client.stream("POST", self._url, content=event, headers=headers) as answer,
            ):
                text = await _excerpt(answer)
        except TimeoutError:
            error = f"no answer within {self._timeout:g} s"
        except (httpx.HTTPError, OSError) as trouble:
            error = f"{type(trouble).__name__}: {trouble}"
        # The status decides, even where the rest of the answer was slow, endless or cut off.
        return Again(error) if answer is None else _judge(answer, text)

    async def aclose(self) -> None:
        await self._client.aclose()


def _judge(answer: httpx.Response, text: str) -> Delivery:
    status = answer.status_code
    if answer.is_success or status == CONFLICT:
        return Delivered()
    error = f"answered {status} {text}".rstrip()
    if status in CLIENT_ERRORS and status not in TRY_AGAIN:
        return Refused(error)
    return Again(error, _retry_after(answer.headers))


def _retry_after(headers: httpx.Headers) -> float | None:
    """Seconds. A date is counted from the answer's own Date: the box's clock may be off."""
    value = headers.get("retry-after", "").strip()
    if value.isascii() and value.isdigit():
        return float(value)
    try:
        then = parsedate_to_datetime(value)
        answered = parsedate_to_datetime(headers["date"]) if "date" in headers else datetime.now(UTC)
        return max(0.0, (then - answered).total_seconds())
    except (ValueError, TypeError):  # not a date; or one of them without a zone
        return None


async def _excerpt(answer: httpx.Response) -> str:
    received = b""
    async for chunk in answer.aiter_raw():
        received += chunk
        if len(received) > ANSWER_LIMIT:
            break
    text = " ".join(received.decode("utf-8", "replace").split())
    return "".join(c for c in text if c.isprintable())[:EXCERPT]


def check_url(options: Options) -> None:
    try:
        url = httpx.URL(options.url)
    except httpx.InvalidURL as error:
        raise BadOptions(f"upstream.url: {error}") from None
    if url.scheme not in ("http", "https") or not url.host:
        raise BadOptions("upstream.url: kind https needs https://…")
    if url.userinfo:
        raise BadOptions("upstream.url: no user or password in it: events are signed")
    if url.scheme == "http" and not (options.allow_plain or is_loopback(url.host)):
        raise BadOptions("upstream.url: plain http beyond loopback needs allow_plain_http = true")
