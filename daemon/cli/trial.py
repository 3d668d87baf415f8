"""A test of the way to headquarters or to a webhook: one signed message, and what came of it in a sentence."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from daemon.cli.failures import FOUND_WRONG
from daemon.cli.output import complain, print_json, say
from daemon.core.clock import millis_text
from daemon.core.delivery import Delivered, Delivery
from daemon.language import tr
from daemon.language.stored import stored

if TYPE_CHECKING:
    from daemon.upstream.kinds import UpstreamReceiver


def sent_at() -> str:
    return millis_text(int(datetime.now(UTC).timestamp() * 1000))


def send(receiver: UpstreamReceiver, event: bytes, event_id: str, nim: str) -> Delivery:
    async def job() -> Delivery:
        try:
            return await receiver.trial(event, event_id=event_id, nim=nim)
        finally:
            await receiver.aclose()

    return asyncio.run(job())


def tell(found: list[tuple[str, str, Delivery]], *, as_json: bool) -> int:
    """`found`: name, address, what came of it. The exit code: 1 when one of them was not taken."""
    if as_json:
        print_json(
            [
                {"name": name, "url": url, "ok": isinstance(done, Delivered), "error": getattr(done, "error", None)}
                for name, url, done in found
            ]
        )
    else:
        for name, url, done in found:
            if isinstance(done, Delivered):
                say(tr("{name}: {url} has taken the test message", name=name, url=url))
            else:
                complain(
                    tr("{name}: {url} did not take the test message: {why}", name=name, url=url, why=stored(done.error))
                )
    return 0 if all(isinstance(done, Delivered) for *_, done in found) else FOUND_WRONG
