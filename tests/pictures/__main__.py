"""`make pictures`: every screen of the shop's page from a running shop, into docs/pictures.

Each in French on a desk (light) and on a phone (dark); with ALL=1 at every width, light and dark, into build/pictures, to be looked at.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

from pictures import headquarters
from support.browser import Person, View, chromium, create_user
from support.ledgers.year import write_year
from support.shop import NIM, Shop, invoice, wait_for

ROOT = Path(__file__).parents[2]
SCREENS = {
    "today": "/ui/",
    "journal": "/ui/journal",
    "invoice": "/ui/journal/798",
    "closures": "/ui/closures",
    "closure": "/ui/closures/22",
    "totals": "/ui/a",
    "x": "/ui/x",
    "close": "/ui/z",
    "box": "/ui/box",
    "files": "/ui/files",
    "log": "/ui/log",
    "welcome": "/ui/welcome",
}
GOODS = (("Riz 25 kg", 15000), ("Huile 5 l", 7500), ("Savon", 450), ("Sucre 1 kg", 850), ("Ciment 50 kg", 5500))
WIDTHS = (360, 768, 1440)
WORDS = {1440: "desk", 360: "phone"}
WEEKS = 3
PER_DAY = 37


def open_shop(shop: Shop) -> None:
    """With some weeks behind it, the last evening's Z among them."""
    day = 86_400_000
    midnight = int(time.time() * 1000) // day * day
    days = 7 * WEEKS
    counters = asyncio.run(write_year(shop.ledger, NIM, PER_DAY * days, days=days, end=midnight + 8 * 3_600_000))
    (machine,) = shop.machines
    machine.start().order("counters", tc=counters.tc, fvc=counters.fvc)
    shop.start_daemon()
    create_user(shop, "awa", "technician")
    made = shop.mcfd("keys", "create", "--nim", NIM, "--label", "caisse 1", check=True)
    shop.use_key(made.stdout.strip())


def sell(shop: Shop) -> None:
    """Some hours' sales in all shapes, a closure among them, and a credit note."""
    for number in range(24):
        name, price = GOODS[number % len(GOODS)]
        items = [{"name": name, "taxGroup": "AB"[number % 3 == 0], "unitPrice": price, "quantity": 1 + number % 4}]
        paid = {"method": "EMC"[number % 3], "amount": price * (1 + number % 4)}
        customer = {"clientType": "PM", "name": "Boulangerie Wend Panga", "ifu": "00012345A"}
        body = invoice(
            f"FV-2026-{number:04d}", items=items, payments=[paid], **({"customer": customer} if number % 5 == 0 else {})
        )
        answer = shop.certify(body)
        assert answer.status_code == 200, answer.text
        if number == 9:
            assert shop.close_period().status_code == 201


def shoot(person: Person, folder: Path, name: str, screens: dict[str, str] = SCREENS) -> None:
    person.log_in("awa")
    for screen, path in screens.items():
        page = person.go(path)
        if screen == "box":
            page.wait_for_selector(".finding", timeout=60_000)
        page.screenshot(path=str(folder / f"{screen}-{name}.png"), full_page=True)
    person.context.close()


def seen(width: int, scheme: str) -> View:
    return View("fr", {"width": width, "height": 800}, scheme)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--all", action="store_true")
    everything = parser.parse_args().all
    folder = ROOT / ("build/pictures" if everything else "docs/pictures")
    folder.mkdir(parents=True, exist_ok=True)
    views = [(width, scheme) for width in WIDTHS for scheme in ("light", "dark")]
    with tempfile.TemporaryDirectory() as place, Shop(Path(place)) as shop, ExitStack() as stack:
        open_shop(shop)
        sell(shop)
        browser = stack.enter_context(chromium())  # it has a loop of its own in this thread
        chosen = views if everything else [(1440, "light"), (360, "dark")]
        named = [(*view, f"{view[0]}-{view[1]}" if everything else WORDS[view[0]]) for view in chosen]
        for width, scheme, name in named:
            shoot(Person(browser, shop, seen(width, scheme)), folder, name)
        shop.machines[0].order("counters", tc=0, fvc=0)
        wait_for(lambda: shop.http.get("/health/ready").json()["machines"][0]["attention"], "attention", 60)
        for width, scheme, name in named:
            person = Person(browser, shop, seen(width, scheme))
            shoot(person, folder, name, {"attention": "/ui/attention", "today-attention": "/ui/"})
        headquarters.shoot(browser, Path(place) / "hq", folder, everything)


if __name__ == "__main__":
    main()
