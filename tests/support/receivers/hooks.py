"""A real receiver of webhooks in a process of its own."""

import asyncio
from typing import Any

from support.receivers.headquarters import HttpHeadquarters
from support.shop import section


class Receiver(HttpHeadquarters):
    """An ERP that takes events; `secret` is what it shares with the box."""

    @property
    def secret(self) -> str:
        return self.keys.public

    def section(self, **settings: Any) -> str:
        values = {"url": self.url, "secret_file": str(self.keys.file), "retry_max": 1.0, **settings}
        return section("[[webhook]]", values)

    def taken(self) -> list[dict[str, Any]]:
        """Each event once, in the order of arrival."""
        return asyncio.run(self.events())

    def of(self, kind: str) -> list[dict[str, Any]]:
        return [event["data"] for event in self.taken() if event["type"] == kind]
