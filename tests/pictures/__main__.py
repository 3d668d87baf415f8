"""`make pictures`: every screen of the shop's page from a running shop, into docs/pictures.

Each in French on a desk (light) and on a phone (dark); with ALL=1 at every width, light and dark, into build/pictures, to be looked at.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from pictures import headquarters
from support.browser import Person, chromium, create_user
from support.shop import Shop, invoice

ROOT = Path(__file__).parents[2]
SCREENS = {
    "today": "/ui/",
    "journal": "/ui/journal",
    "invoice": "/ui/journal/4",
    "closures": "/ui/closures",
    "closure": "/ui/closures/1",
    "totals": "/ui/a",
    "x": "/ui/x",
    "close": "/ui/z",
    "attention": "/ui/attention",
    "box": "/ui/box",
}
GOODS = (("Riz 25 kg", 15000), ("Huile 5 l", 7500), ("Savon", 450), ("Sucre 1 kg", 850), ("Ciment 50 kg", 5500))
WIDTHS = (360, 768, 1440)


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


def shoot(person: Person, folder: Path, scheme: str, name: str) -> None:
    person.page.emulate_media(color_scheme=scheme)
    person.log_in("awa")
    for screen, path in SCREENS.items():
        page = person.go(path)
        if screen == "box":
            page.wait_for_selector(".finding", timeout=60_000)
        page.screenshot(path=str(folder / f"{screen}-{name}.png"), full_page=True)
    person.context.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--all", action="store_true")
    everything = parser.parse_args().all
    folder = ROOT / ("build/pictures" if everything else "docs/pictures")
    folder.mkdir(parents=True, exist_ok=True)
    views = [(width, scheme) for width in WIDTHS for scheme in ("light", "dark")]
    with tempfile.TemporaryDirectory() as place, Shop(Path(place)) as shop, chromium() as browser:
        shop.start()
        create_user(shop, "awa", "technician")
        sell(shop)
        for width, scheme in views if everything else ((1440, "light"), (360, "dark")):
            name = f"{width}-{scheme}" if everything else {1440: "desk", 360: "phone"}[width]
            shoot(Person(browser, shop, viewport={"width": width, "height": 800}), folder, scheme, name)
        headquarters.shoot(browser, Path(place) / "hq", folder, everything)


if __name__ == "__main__":
    main()
