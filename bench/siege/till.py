"""The till that has to go on: one invoice a second, each on a connection of its own, as tills do that know no keep-alive, and each from an
address that has not shown a key yet."""

from __future__ import annotations

import http.client
import itertools
import json
import time
from dataclasses import dataclass, field

from bench.figures import quantile
from bench.siege.target import Target, sale, trusting

EVERY = 1.0
PATIENCE = 20.0
ITEMS = 3


@dataclass
class InvoiceTimes:
    """Seconds from the first packet to the whole answer, of each invoice; and what went wrong instead."""

    times: list[float] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)

    def quantile(self, share: float) -> float:
        """The time within which that share was answered, errors counted as the whole patience."""
        times = [*self.times, *(PATIENCE for _ in self.errors)]
        return quantile(times, share) if times else float("nan")


class SiegeTill:
    def __init__(self, target: Target, key: str) -> None:
        self._target = target
        self._key = key
        self._numbers = itertools.count(1)
        self._addresses = itertools.count()
        self._tls = trusting()

    def work(self, seconds: float) -> InvoiceTimes:
        """Certifies each second; an invoice that takes longer delays the next one."""
        seen, ends, turn = InvoiceTimes(), time.monotonic() + seconds, time.monotonic()
        while time.monotonic() < ends:
            self.certify(seen)
            turn = max(turn + EVERY, time.monotonic())
            time.sleep(max(0.0, turn - time.monotonic()))
        return seen

    def certify(self, seen: InvoiceTimes) -> float:
        body = json.dumps(sale(f"T-{next(self._numbers)}", ITEMS, 1500))
        headers = {"Authorization": f"Bearer {self._key}", "Content-Type": "application/json"}
        began = time.perf_counter()
        try:
            connection = self._connect()
            try:
                connection.request("POST", self._target.certify_path, body, headers)
                answer = connection.getresponse()
                told = answer.read()
            finally:
                connection.close()
        except (OSError, http.client.HTTPException) as error:
            seen.errors.append(repr(error))
            return PATIENCE
        took = time.perf_counter() - began
        if answer.status == http.HTTPStatus.OK:
            seen.times.append(took)
        else:
            seen.errors.append(f"{answer.status} {told[:200].decode(errors='replace')}")
        return took

    def _connect(self) -> http.client.HTTPConnection:
        at = next(self._addresses)
        address, port = (f"127.{2 + at // 250 % 250}.0.{1 + at % 250}", 0), self._target.port
        if self._target.tls:
            return http.client.HTTPSConnection(
                "127.0.0.1", port, timeout=PATIENCE, context=self._tls, source_address=address
            )
        return http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE, source_address=address)
