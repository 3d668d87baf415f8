"""Webhooks of a test shop, and a real receiver of them in a process of its own."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from support.receivers.headquarters import HttpHeadquarters
from support.shop import Shop


class HookedShop(Shop):
    """With `[[webhook]]` sections, as TOML, beside the others."""

    hooks = ""

    def _write_config(self) -> None:
        super()._write_config()
        with self.config_file.open("a") as file:
            file.write(self.hooks)


class Receiver(HttpHeadquarters):
    """An ERP that takes events; `secret` is what it shares with the box."""

    @property
    def secret(self) -> str:
        return self.keys.public

    def section(self, **settings: Any) -> str:
        values = {"url": self.url, "secret_file": str(self.keys.file), "retry_max": 1.0, **settings}
        return "\n[[webhook]]\n" + "".join(f"{key} = {json.dumps(value)}\n" for key, value in values.items())

    def taken(self) -> list[dict[str, Any]]:
        """Each event once, in the order of arrival."""
        return asyncio.run(self.events())

    def of(self, kind: str) -> list[dict[str, Any]]:
        return [event["data"] for event in self.taken() if event["type"] == kind]
