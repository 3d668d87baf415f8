"""`make pictures`: the screens that the documents show, from a running shop, into docs/pictures, in French.

With ALL=1 every screen at every width, light and dark, in both languages, into build/pictures, to be looked at.
"""

import argparse
import os
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

from pictures import first_start, headquarters
from playwright.sync_api import Browser
from support.browser import Person, View, chromium, create_user
from support.shop import IFU, NIM, Machine, Shop, invoice, wait_for

from bench.shop.ledger import Maker
from common.language import Language

ROOT = Path(__file__).parents[2]
SCREENS = {
    "today": "/ui/",
    "journal": "/ui/journal",
    "invoice": "/ui/journal/{last}",
    "credit": "/ui/journal/{last}/credit",
    "sale": "/ui/sale",
    "waiting": "/ui/waiting",
    "cash": "/ui/cash",
    "closures": "/ui/closures",
    "closure": "/ui/closures/{z}",
    "totals": "/ui/a",
    "vat": "/ui/vat",
    "x": "/ui/x",
    "close": "/ui/z",
    "box": "/ui/box",
    "keys": "/ui/box/keys",
    "people": "/ui/box/people",
    "backups": "/ui/box/backups",
    "history": "/ui/box/history",
    "update": "/ui/box/update",
    "files": "/ui/files",
    "log": "/ui/log",
    "account": "/ui/account",
    "welcome": "/ui/welcome",
}
PAIR = {"outages": "/ui/outages", "spare": "/ui/spare"}
GOODS = (("Riz 25 kg", 15000), ("Huile 5 l", 7500), ("Savon", 450), ("Sucre 1 kg", 850), ("Ciment 50 kg", 5500))
WIDTHS = (360, 390, 768, 1366, 1920)
DESK, PHONE = 1366, 390
DEFAULT_SCREENS = {"desk": ("today", "journal", "closures", "close"), "phone": ("today", "invoice")}
"""What docs/page.md and README.md show, by view."""
WEEKS = 3
PER_DAY = 37
SALES = 9
HOUR = 3_600_000
OPENING, CLOSING, GAP = 8 * HOUR, 16 * HOUR, 13 * 60_000
"""The first sale of a day and its Z, after midnight; between two sales."""
LANGUAGES: tuple[Language, ...] = ("fr", "en")


def open_shop(shop: Shop) -> int:
    """With some weeks behind it, the last evening's Z among them, and the sales of this day up to now; how many sales."""
    day, now = 86_400_000, int(time.time() * 1000)
    midnight = now // day * day
    maker = Maker(shop.ledger, NIM)
    for begins in range(midnight - 7 * WEEKS * day, midnight, day):
        maker.sell(range(begins + OPENING, begins + OPENING + PER_DAY * GAP, GAP))
        maker.close(begins + CLOSING)
    maker.sell(range(min(midnight + OPENING, now - HOUR), now, GAP))
    counters = maker.finish()
    (machine,) = shop.machines
    machine.start().order("counters", tc=counters.tc, fvc=counters.fvc)
    shop.start_daemon()
    create_user(shop, "awa", "technician")
    key = shop.mcfd("keys", "create", "--nim", NIM, "--label", "caisse 1", check=True)
    shop.use_key(key.stdout.strip())
    shop.mcfd("backup", "--into", str(shop.ledger.parent / "backups"), check=True)
    return counters.fvc


def sell(shop: Shop) -> None:
    """The latest sales, in all shapes, and what was put into the drawer and taken out."""
    for number in range(SALES):
        name, price = GOODS[number % len(GOODS)]
        items = [{"name": name, "taxGroup": "AB"[number % 3 == 0], "unitPrice": price, "quantity": 1 + number % 4}]
        paid = {"method": "EMC"[number % 3], "amount": price * (1 + number % 4)}
        customer = {"clientType": "PM", "name": "Boulangerie Wend Panga", "ifu": "00012345A"}
        body = invoice(
            f"FV-2026-{number:04d}", items=items, payments=[paid], **({"customer": customer} if number % 5 == 0 else {})
        )
        answer = shop.certify(body)
        assert answer.status_code == 200, answer.text
    for kind, amount, reason in (
        ("deposit", 50_000, "fond de caisse"),
        ("withdrawal", 20_000, "versement à la banque"),
    ):
        body = {"kind": kind, "amount": amount, "reason": reason, "operatorName": "Awa"}
        assert shop.http.post(f"/v1/mcf/{NIM}/cash", json=body, headers=shop.headers()).status_code == 201


def shoot(person: Person, folder: Path, name: str, screens: dict[str, str] = SCREENS, *, most: int = 0) -> None:
    """`most`: so high a picture is at the most."""
    person.log_in("awa")
    for screen, path in screens.items():
        page = person.go(path)
        if screen == "box":
            page.wait_for_selector(".finding", timeout=60_000)
        first_start.take(page, folder, screen, name, most=most)
    person.context.close()


def shoot_pair(browser: Browser, place: Path, folder: Path, seen_as: list[tuple[str, View]]) -> None:
    """A machine that has died, its outage and its spare."""
    spare = Machine(place, "EL02000099-1", IFU)
    with Shop(place) as shop, ExitStack() as stack:
        stack.callback(spare.kill)
        shop.more_config = f'[[machine]]\nnim = "{spare.nim}"\nport = "{spare.link}"\nspare_for = "{NIM}"\n'
        spare.start()
        shop.start()
        create_user(shop, "awa", "technician")
        shop.machines[0].kill()
        wait_for(lambda: not shop.is_ready(), "the machine's death")
        assert shop.certify(invoice("FV-2026-0001")).status_code == 503
        for name, view in seen_as:
            shoot(Person(browser, shop, view), folder, name, PAIR)


def views(everything: bool) -> list[tuple[str, View]]:
    """Each with its name in the name of a picture."""
    if not everything:
        return [("desk", seen("fr", DESK, "light")), ("phone", seen("fr", PHONE, "dark"))]
    each = [(language, width, scheme) for language in LANGUAGES for width in WIDTHS for scheme in ("light", "dark")]
    return [(f"{language}-{width}-{scheme}", seen(language, width, scheme)) for language, width, scheme in each]


def seen(language: Language, width: int, scheme: str) -> View:
    """The narrow ones are touched, as a phone and a tablet are."""
    return View(language, {"width": width, "height": 800}, scheme, is_touched=width < DESK)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--all", action="store_true")
    everything = parser.parse_args().all
    folder = ROOT / ("build/pictures" if everything else "docs/pictures")
    folder.mkdir(parents=True, exist_ok=True)
    os.environ.pop("PYTHONPATH", None)  # of this process alone: the programs would take tests/headquarters for theirs
    with tempfile.TemporaryDirectory() as place, Shop(Path(place)) as shop, ExitStack() as stack:
        sold = open_shop(shop)
        sell(shop)
        browser = stack.enter_context(chromium())  # it has a loop of its own in this thread
        places = {"last": sold + SALES - 3, "z": 7 * WEEKS}
        screens = {name: path.format(**places) for name, path in SCREENS.items()}
        for name, view in views(everything):
            chosen = screens if everything else {screen: screens[screen] for screen in DEFAULT_SCREENS[name]}
            shoot(Person(browser, shop, view), folder, name, chosen, most=0 if everything else first_start.FOLD)
        if not everything:
            headquarters.shoot(browser, Path(place) / "hq", folder, everything)
            return
        shop.machines[0].order("counters", tc=0, fvc=0)
        wait_for(lambda: shop.http.get("/health/ready").json()["machines"][0]["attention"], "attention", 60)
        for name, view in views(everything):
            person = Person(browser, shop, view)
            shoot(person, folder, name, {"attention": "/ui/attention", "today-attention": "/ui/"})
        (Path(place) / "empty").mkdir()
        first_start.shoot(browser, Path(place) / "empty", folder, views(everything))
        first_start.shoot_once(browser, shop, folder, views(everything))
        (Path(place) / "pair").mkdir()
        shoot_pair(browser, Path(place) / "pair", folder, views(everything))
        headquarters.shoot(browser, Path(place) / "hq", folder, everything)


if __name__ == "__main__":
    main()
