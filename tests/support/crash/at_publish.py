"""A process of the relay's lane that counts what it publishes, and at one message of it kills a process: itself, its counterpart, nats-server.

**order**: while that file exists it holds `{"when":"before"|"after","pid":N}`: SIGKILL for process N before the next message, or once it has gone
out. The file is removed first. **log**: a line for each message, the `x-request-id` of its call."""

import asyncio
import json
import os
import signal
from pathlib import Path
from typing import Any

from support.crash.crashing import arm_commits

GONE_SECONDS = 0.01
"""After which what was published is with the system."""


def arm_relay(order: str, log: str) -> None:
    """The calls that it sends to boxes."""
    from common.wire.call import read_call  # noqa: PLC0415  in the child alone

    _arm(order, log, lambda subject, content: subject.endswith(".call") and dict(read_call(content).headers))


def arm_box(order: str, log: str, commits: str) -> None:
    """Its answers; `commits`: the orders of `support.crash.crashing`."""
    from common.wire.call import read_reply  # noqa: PLC0415  in the child alone

    def answered(subject: str, content: bytes) -> dict[str, str] | bool:
        return subject.startswith("_INBOX") and (reply := read_reply(content)).status > 0 and dict(reply.headers)

    arm_commits(Path(commits))
    _arm(order, log, answered)


def _arm(order: str, log: str, headers_of: Any) -> None:
    from common.wire.nats_client import Client  # noqa: PLC0415  in the child alone

    real = Client.publish

    def publish(client: Client, subject: str, content: bytes, *arguments: Any, **more: Any) -> None:
        found = content and headers_of(subject, content)
        if found:
            _strike(Path(order), "before")
            with Path(log).open("a") as lines:
                lines.write(f"{found.get('x-request-id', '')}\n")
        real(client, subject, content, *arguments, **more)
        if found:
            asyncio.get_running_loop().call_later(GONE_SECONDS, _strike, Path(order), "after")

    Client.publish = publish  # type: ignore[method-assign]  of this process


def _strike(path: Path, when: str) -> None:
    try:
        order = json.loads(path.read_text())
    except FileNotFoundError:
        return
    if order["when"] == when:
        path.unlink()
        os.kill(order["pid"], signal.SIGKILL)
