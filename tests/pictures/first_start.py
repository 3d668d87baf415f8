"""What is seen once only: the first start of a box, from its code to the daemon; a new key; a copy that is put back."""

from io import BytesIO
from pathlib import Path

from PIL import Image
from playwright.sync_api import Browser, Page
from support.browser import PASSWORD, Person, View
from support.empty_box import EmptyBox
from support.shop import Shop, wait_for

Views = list[tuple[str, View]]
FOLD = 844
"""Pixels that a document shows of a screen."""
DELAYED_FETCH = "window.fetch = () => new Promise(() => {})"
"""A screen that opens the next one by itself stays."""


def shoot(browser: Browser, place: Path, folder: Path, views: Views) -> None:
    """Everybody looks until somebody sets the box up, and then at the keys; who starts mcfd is the last to look."""
    with EmptyBox(place) as box:
        box.set_up_in_page()
        people = [(name, Person(browser, box, view)) for name, view in views]
        for name, person in people:
            take(person.go("/ui/setup/code"), folder, "setup-code", name)
            person.page.goto(box.link)
            person.page.wait_for_selector("[name^='nim.']", timeout=60_000)
            person.page.locator("#setup details summary").first.click()
            take(person.page, folder, "setup", name)
        name, person = people[0]
        with person.context.expect_page() as opened:
            person.follow("Look at it closely")
        opened.value.wait_for_selector("[data-testid=probe-row]", timeout=60_000)
        in_each_size(opened.value, folder, "setup-probe", views)
        person.page.fill("[name=name]", "issa")
        person.page.fill("[name=password]", "aaaaaaaaaaaa")
        person.press("Set up")
        in_each_size(person.page, folder, "setup-refused", views)
        person.page.fill("[name=password]", PASSWORD)
        person.press("Set up")
        for name, each in people:
            take(each.go("/ui/setup/done"), folder, "setup-done", name)
        person.page.add_init_script(DELAYED_FETCH)
        person.press("I have noted it: start mcfd")
        in_each_size(person.page, folder, "setup-starting", views)
        wait_for(lambda: box.log_file.read_text().count('"event":"daemon.started"'), "the daemon", 60)
        for _, each in people:
            each.context.close()


def shoot_once(browser: Browser, shop: Shop, folder: Path, views: Views) -> None:
    """A key for each who looks; then the copy is put back, with which the daemon starts again."""
    for name, view in views:
        person = Person(browser, shop, view)
        person.log_in("awa")
        person.go("/ui/box/keys").locator("form[action*='/ui/box/key'] [name=label]").fill("Caisse 2")
        person.press("Make a key")
        person.sees("new-key")
        take(person.page, folder, "new-key", name)
        person.go("/ui/box/backups").locator("#backups a[href$='/restore']").first.click()
        take(person.page, folder, "restore", name)
        person.context.close()
    person = Person(browser, shop, views[0][1])
    person.log_in("awa")
    person.go("/ui/box/backups").locator("#backups a[href$='/restore']").first.click()
    person.page.locator("[name=sure]").check()
    person.page.add_init_script(DELAYED_FETCH)
    person.press("Put it back now")
    in_each_size(person.page, folder, "restoring", views)
    person.context.close()


def in_each_size(page: Page, folder: Path, screen: str, views: Views) -> None:
    """What cannot be asked for twice, in the one language that it is in."""
    for name, view in views:
        if view.language == views[0][1].language:
            seen_as(page, view)
            take(page, folder, screen, name)
    seen_as(page, views[0][1])


def seen_as(page: Page, view: View) -> None:
    page.set_viewport_size({"width": view.size["width"], "height": view.size["height"]})
    page.emulate_media(color_scheme="dark" if view.scheme == "dark" else "light")


def take(page: Page, folder: Path, screen: str, name: str, *, most: int = 0) -> None:
    """All of it, or `most` pixels, on a screen that is so high: what takes a whole page by itself forgets that it is touched. 256 colours are
    enough for a page, and a quarter of the bytes."""
    size = page.viewport_size
    assert size
    whole = page.evaluate("document.documentElement.scrollHeight")
    page.set_viewport_size({**size, "height": min(whole, most) if most else whole})
    picture = Image.open(BytesIO(page.screenshot())).convert("RGB")
    picture.quantize(256, dither=Image.Dither.NONE).save(folder / f"{screen}-{name}.png", optimize=True)
    page.set_viewport_size(size)
