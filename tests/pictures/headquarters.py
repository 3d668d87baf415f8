"""Headquarters' page as an accountant sees it: every screen on a desk (light) and on a phone (dark)."""

import time
from pathlib import Path
from typing import Any

from pictures.first_start import FOLD, take
from support.hq.paper_box import DAY, PaperBox
from support.hq.running import RunningHq
from support.hq.store import presence_word, received

from headquarters.store.store import HqStore

PASSWORD = "un mot de passe"  # noqa: S105  # of a picture
SHOPS = (
    ("EL02000015-1", "Ouaga Centre", "Centre"),
    ("EL02000016-1", "Ouaga 2000", "Centre"),
    ("EL02000017-1", "Bobo Marché", "Ouest"),
    ("EL02000018-1", "Banfora", "Ouest"),
    ("EL02000019-1", "Koudougou", "Centre-Ouest"),
)
DAYS = 24
MONTH = time.strftime("%Y-%m")
MISSING = ((0, 11), (0, 12), (4, 20), (2, DAYS - 1))
"""Closures that did not come, by shop and day."""
SCREENS = {
    "calendar": f"/ui/?month={MONTH}",
    "totals": f"/ui/totals?month={MONTH}",
    "shop": f"/ui/shops/EL02000015?month={MONTH}",
    "findings": "/ui/findings",
    "boxes": "/ui/boxes",
    "exports": "/ui/exports",
    "people": "/ui/people",
    "join": "/ui/join",
}
DEFAULT_SCREENS = (("calendar", "desk"),)
"""What docs/headquarters.md shows."""
VIEWS = (("desk", 1366, "light"), ("phone", 390, "dark"))


def fill(store: HqStore) -> str:
    """Some weeks of five shops up to yesterday; what is missing and wrong in them. The path of one closure."""
    path = ""
    now = time.time_ns() // 1_000_000
    first = (now // DAY - DAYS) * DAY + 18 * DAY // 24
    for index, (nim, label, region) in enumerate(SHOPS):
        box = PaperBox(nim)
        store.register.add(nim, box.key.public, now=1, label=label, region=region)
        for day in range(DAYS):
            strange = {"unexplained": 1} if (index, day) == (3, 9) else {}
            closure = box.close(sales=20 + (day * 7 + index * 11) % 45, at=first + day * DAY, **strange)
            if (index, day) not in MISSING:
                store.closures.store([received(box, closure, store)], now=now)
                path = path or f"/ui/closures/{nim.partition('-')[0]}/{closure.report_id}"
        if index != 2:
            presence = box.presence(at=now, tax_days=6 if index == 1 else 0)
            store.presences.store([presence_word(box, presence)], now=now)
    return path


def shoot(browser: Any, place: Path, folder: Path, everything: bool) -> None:
    hq = RunningHq(place, f"sqlite:///{place}/hq.sqlite3")
    store = HqStore(hq.url)
    store.open()
    screens = {**SCREENS, "closure": fill(store)}
    store.close()
    hq.start()
    try:
        hq.cli("users", "create", "Awa", "--role", "admin", "--password-stdin", stdin=PASSWORD + "\n")
        for name, width, scheme in VIEWS:
            context = browser.new_context(
                base_url=hq.base,
                locale="fr-BF",
                color_scheme=scheme,
                viewport={"width": width, "height": 800},
                has_touch=name == "phone",
            )
            page = context.new_page()
            page.goto("/ui/")
            page.fill("input[name=name]", "Awa")
            page.fill("input[name=password]", PASSWORD)
            page.click("[data-testid=login]")
            page.wait_for_url("**/ui/")
            for screen, path in screens.items():
                if not everything and (screen, name) not in DEFAULT_SCREENS:
                    continue
                page.goto(path)
                take(page, folder, f"hq-{screen}", name, most=0 if everything else FOLD)
            context.close()
    finally:
        hq.stop()
