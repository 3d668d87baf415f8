"""The published client `avepay-mcf`, of both kinds, as a test calls it."""

import asyncio
import inspect
from typing import Any

import pytest
from avepay.mcf import AsyncAvePay, AvePay, AvePayError, Receipt
from support.shop import NIM, Shop
from support.till import fresh

OPERATOR = {"id": 1, "name": "Awa"}
WALK_IN = {"type": "CC"}


class Published:
    """`client("certify", …)` on the NIM-bound client, `client("me")` on the other; `key`, `nim` and `retries` as the test
    wants them."""

    def __init__(self, shop: Shop, kind: type[AvePay | AsyncAvePay]) -> None:
        self._shop = shop
        self._kind = kind

    def __call__(self, method: str, *, key: str = "", nim: str = NIM, retries: int = 2, **arguments: Any) -> Any:
        url = f"http://127.0.0.1:{self._shop.port}"
        client = self._kind(key or self._shop.key(), base_url=url, isf="SFE-1", max_retries=retries)
        return asyncio.run(_call(client, method, nim, arguments))

    def refused(self, code: str, status: int, method: str, **arguments: Any) -> AvePayError:
        """The client's own error, with the server's words and request id."""
        with pytest.raises(AvePayError) as raised:
            self(method, **arguments)
        error = raised.value
        assert (error.code, error.http_status) == (code, status), error
        assert error.message == error.raw["detail"]
        assert error.request_id == error.raw["request_id"]
        assert error.is_bridge_offline == (code == "BRIDGE_OFFLINE")
        return error


async def _call(client: Any, method: str, nim: str, arguments: dict[str, Any]) -> Any:
    try:
        result = getattr(client if method == "me" else client.mcf(nim), method)(**arguments)
        return await result if inspect.isawaitable(result) else result
    finally:
        await client.aclose() if isinstance(client, AsyncAvePay) else client.close()


def sale(*prices: int, **changes: Any) -> dict[str, Any]:
    prices = prices or (15000,)
    items = [{"name": f"Article {at}", "tax_group": "B", "unit_price": price} for at, price in enumerate(prices)]
    body = {
        "number": fresh(),
        "operator": OPERATOR,
        "customer": WALK_IN,
        "items": items,
        "payments": [{"method": "cash", "amount": sum(prices)}],
    }
    return {**body, **changes}


def machine_record(shop: Shop, receipt: Receipt) -> dict[str, Any]:
    """What the machine has of it."""
    return next(e for e in shop.machines[0].certified(receipt.counters.tc - 1) if e["code"] == receipt.sig)
