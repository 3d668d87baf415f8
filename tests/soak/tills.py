"""The tills of the soak: they sell, credit, close and look at random, and keep every receipt they were given."""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import httpx
from support.shop import Shop, invoice

PATIENCE = 120.0
"""Seconds that one request may be tried again; longer than any trouble lasts."""
AGAIN = {
    httpx.codes.UNPROCESSABLE_ENTITY,  # in the machine's words only: a power cut took the open invoice
    httpx.codes.BAD_GATEWAY,
    httpx.codes.SERVICE_UNAVAILABLE,
}
PAUSE = (0.0, 0.4)
LOOKS = ("/metrics", "/health/ready", "/v1/me")
LOOKS_AT_ONE = ("reports/x", "reports/a", "reports", "info", "certifications")
INVALID = {"invoiceNumber": "bad", "invoiceType": "FV", "items": [], "payments": []}


@dataclass
class Book:
    """What the tills of one machine in one mode were told: code and total by invoice number, and the Z closures."""

    nim: str
    mode: str
    codes: dict[str, str] = field(default_factory=dict)
    totals: dict[str, int] = field(default_factory=dict)
    closures: dict[int, dict[str, Any]] = field(default_factory=dict)


@dataclass
class Diary:
    """What all of them saw; `wrong` is empty when all is well."""

    answers: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    slowest: float = 0.0
    stop: threading.Event = field(default_factory=threading.Event)


class GivenUp(Exception):
    pass


class Till(threading.Thread):
    def __init__(self, shop: Shop, book: Book, diary: Diary, seed: str) -> None:
        super().__init__(name=seed, daemon=True)
        self._book = book
        self._diary = diary
        self._dice = random.Random(seed)
        self._headers = shop.headers(book.mode, book.nim)  # type: ignore[arg-type]  # live or test
        self._http = httpx.Client(base_url=f"http://127.0.0.1:{shop.port}", timeout=60)
        self._count = 0

    def run(self) -> None:
        actions = ((70, self.sell), (6, self.credit), (6, self.repeat), (4, self.sell_twice), (4, self.mistype))
        chances, do = zip(*(*actions, (10, self.look)), strict=True)
        try:
            while not self._diary.stop.wait(self._dice.uniform(*PAUSE)):
                self._dice.choices(do, chances)[0]()
        except Exception as error:  # noqa: BLE001  told at the end
            self._diary.wrong.append(f"{self.name}: {error!r}")
        finally:
            self._http.close()

    # -- what a till does -----------------------------------------------------------------------------------------------

    def sell(self) -> dict[str, Any]:
        prices = [self._dice.randint(1, 50_000) for _ in range(self._dice.randint(1, 5))]
        return self._certify("certify", invoice(self._number(), *prices))

    def credit(self) -> None:
        sold = self.sell()
        changes = {"invoiceType": "FA", "creditNoteRef": f"{self._book.nim}-{sold['fvc']}"}
        note = invoice(self._number(), sold["totalTtc"], **changes)
        self._certify("credit-note", note)

    def repeat(self) -> None:
        """The answer was lost on the network: the same request again gives it once more."""
        body, key = invoice(self._number(), self._dice.randint(1, 9999)), self._key()
        first = self._until_done("certify", body, key)
        self._keep(body, first.json())
        again = self._until_done("certify", body, key)
        if again.content != first.content:
            self._wrong(f"{body['invoiceNumber']} was answered differently the second time")

    def sell_twice(self) -> None:
        """A number that is used already: refused, with the certification it had."""
        sold = self.sell()
        number = f"{self.name}-{self._count}"
        answer = self._until_done("certify", invoice(number, 77), self._key(), expected=httpx.codes.CONFLICT)
        if answer.json()["code"] != "DUPLICATE_INVOICE" or sold["codeSecef"] not in answer.text:
            self._wrong(f"{number} a second time: {answer.text}")

    def mistype(self) -> None:
        answer = self._until_done("certify", INVALID, self._key(), expected=httpx.codes.UNPROCESSABLE_ENTITY)
        if answer.json()["code"] != "INVALID_REQUEST":
            self._wrong(f"an invoice without items: {answer.text}")

    def look(self) -> None:
        path = self._dice.choice((*LOOKS, *(f"/v1/mcf/{self._book.nim}/{look}" for look in LOOKS_AT_ONE)))
        try:
            answer = self._http.get(path, headers=self._headers)
        except httpx.HTTPError:
            return
        self._note(answer)
        if answer.status_code not in (httpx.codes.OK, httpx.codes.SERVICE_UNAVAILABLE, httpx.codes.BAD_GATEWAY):
            self._wrong(f"{path}: {answer.status_code} {answer.text}")

    # -- how ------------------------------------------------------------------------------------------------------------

    def _number(self) -> str:
        self._count += 1
        return f"{self.name}-{self._count}"

    def _key(self) -> str:
        return f"{self.name}-{self._dice.getrandbits(64):x}"

    def _certify(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        receipt: dict[str, Any] = self._until_done(path, body, self._key()).json()
        self._keep(body, receipt)
        return receipt

    def _keep(self, body: dict[str, Any], receipt: dict[str, Any]) -> None:
        self._book.codes[body["invoiceNumber"]] = receipt["codeSecef"]
        self._book.totals[body["invoiceNumber"]] = receipt["totalTtc"]

    def _until_done(self, path: str, body: Any, key: str, expected: int = httpx.codes.OK) -> httpx.Response:
        """The same request with the same key until there is an outcome."""
        began = time.monotonic()
        while time.monotonic() - began < PATIENCE:
            try:
                answer = self._http.post(
                    f"/v1/mcf/{self._book.nim}/{path}", json=body, headers={**self._headers, "Idempotency-Key": key}
                )
            except httpx.HTTPError as error:
                self._diary.answers[type(error).__name__] += 1
            else:
                self._note(answer)
                if answer.status_code == expected:
                    self._diary.slowest = max(self._diary.slowest, time.monotonic() - began)
                    return answer
                if answer.status_code not in AGAIN or "INVALID_REQUEST" in answer.text:
                    raise GivenUp(f"{path} {body.get('invoiceNumber')}: {answer.status_code} {answer.text}")
            time.sleep(0.1)
        raise GivenUp(f"{path} {body.get('invoiceNumber')}: no outcome within {PATIENCE:g} s")

    def _note(self, answer: httpx.Response) -> None:
        code = answer.json().get("code", "") if answer.is_error else ""
        self._diary.answers[f"{answer.status_code} {code}".strip()] += 1

    def _wrong(self, text: str) -> None:
        self._diary.wrong.append(f"{self.name}: {text}")


class Closer(Till):
    """The one that takes the Z, every now and then."""

    def __init__(self, shop: Shop, book: Book, diary: Diary, seed: str, every: tuple[float, float]) -> None:
        super().__init__(shop, book, diary, seed)
        self._every = every

    def run(self) -> None:
        try:
            while not self._diary.stop.wait(self._dice.uniform(*self._every)):
                self.close_period()
        except Exception as error:  # noqa: BLE001  told at the end
            self._wrong(repr(error))

    def close_period(self) -> None:
        report = self._until_done("reports/z", {}, self._key(), expected=httpx.codes.CREATED).json()
        if report["z_number"] in self._book.closures:
            self._wrong(f"Z {report['z_number']} was given twice")
        self._book.closures[report["z_number"]] = report
