"""The page without a mouse: what has the focus is seen, a fault or a result takes it, Escape closes what is open. Also a form whose answer
never came, and a fault in words."""

import re
from collections.abc import Callable
from importlib.resources import files

import pytest
from playwright.sync_api import expect
from support.browser import FRENCH_PHONE, Person, View, session_of
from support.shop import Shop

People = Callable[..., Person]
SMALL_DESKTOP = View("fr", {"width": 1280, "height": 600})
SCREENS = ("/ui/", "/ui/journal", "/ui/sale", "/ui/cash", "/ui/z", "/ui/closures", "/ui/a", "/ui/box", "/ui/box/keys")
FOCUSED = """() => {
  const each = document.activeElement;
  if (each === document.body) return null;
  const box = each.getBoundingClientRect(), style = getComputedStyle(each);
  const top = document.elementFromPoint(box.left + box.width / 2, box.top + box.height / 2);
  const isCovered = box.height < 200 && !(top && (each.contains(top) || top.contains(each)));
  return [isCovered, style.outlineStyle !== "none" || style.boxShadow !== "none", each.outerHTML.slice(0, 120)];
}"""
"""Whether the element with the focus is under another one (one that is higher than the screen is never whole), whether it shows the focus,
and which it is; null at the end of the screen."""
MOST = 40
"""Steps on a screen; the links of a long list are alike."""


@pytest.mark.long
@pytest.mark.parametrize(
    "view", [pytest.param(FRENCH_PHONE, id="phone"), pytest.param(SMALL_DESKTOP, id="small-desktop")]
)
def test_what_has_the_focus_is_seen(person: People, view: View) -> None:
    """With Tab through a screen, nothing is under the banner or the bar of tabs, and each shows that it has the focus (WCAG 2.4.7, 2.4.11)."""
    tech = person("technician", view)
    tech.page.emulate_media(reduced_motion="reduce")
    wrong = []
    for path in SCREENS:
        tech.go(path)
        for _ in range(MOST):
            tech.page.keyboard.press("Tab")
            found = tech.page.evaluate(FOCUSED)
            if found is None:
                break
            covered, visible, which = found
            if covered or not visible:
                wrong.append((path, which))
    assert wrong == []


def test_what_came_of_a_form_has_the_focus(person: People) -> None:
    """The fault, and the result: a screen reader reads it first, and Tab goes on into the form and not through the menu. At the login it is
    the password that is typed again."""
    awa = person("manager")
    page = awa.go("/ui/cash")
    page.fill("[name=amount]", "x")
    page.fill("[name=reason]", "monnaie")
    page.keyboard.press("Enter")
    expect(page.get_by_role("alert").last).to_be_focused()
    page.keyboard.press("Tab")
    expect(page.locator("[name=kind]")).to_be_focused()
    page.fill("[name=amount]", "100")
    page.keyboard.press("Enter")
    awa.sees_message("Noted.")
    expect(page.get_by_text(awa.view.say("Noted."), exact=True)).to_be_focused()
    stranger = person()
    stranger.log_in("manager", "not the password")
    expect(stranger.page.locator("[name=password]")).to_be_focused()
    for each in (awa, stranger):
        each.complaints.clear()  # Chromium notes the 422 and the 401


@pytest.mark.parametrize(
    "view",
    [FRENCH_PHONE, View("fr", {"width": 320, "height": 256}), View("fr", {"width": 320, "height": 640})],
    ids=["phone", "low", "small"],
)
def test_a_long_banner_leaves_room_for_the_screen(person: People, view: View) -> None:
    """With letters twice as large an outage's banner left a finger's width of the screen; on a low one (400 % on a desktop) it scrolls away. The
    telephone number of who is called is on one line where it fits, and within the screen where it does not."""
    page = person("technician", view).go("/ui/box")
    words = "la machine est en panne, ce qui est vendu sera certifié plus tard ; 3 ventes attendent leur certification"
    words += " ; appelez Ets Kaboré, " + "+226 70 00 00 00".replace(" ", "\N{NO-BREAK SPACE}")
    page.evaluate(
        """words => {
          document.documentElement.style.fontSize = "200%";
          document.querySelector("#state .banner span").append(words, words);
          document.querySelector("main").style.paddingBottom = "3000px";
          scrollTo({ top: 2500, behavior: "instant" });
        }""",
        words,
    )
    end = page.locator("#state").evaluate("banner => banner.getBoundingClientRect().bottom")
    assert end <= view.size["height"] * 0.4
    assert page.locator("#state").evaluate("banner => banner.scrollWidth - banner.clientWidth") <= 0
    if view.size["height"] > 600:
        assert end > 0


def test_escape_closes_the_account_menu(person: People) -> None:
    """The focus is on its button again; somebody who presses beside it closes it too."""
    page = person("seller").go("/ui/journal")
    menu, button = page.locator(".account > .card"), page.locator(".account > summary")
    button.press("Enter")
    expect(menu).to_be_visible()
    page.keyboard.press("Tab")
    page.keyboard.press("Escape")
    expect(menu).to_be_hidden()
    expect(button).to_be_focused()
    button.click()
    expect(menu).to_be_visible()
    page.locator("h1").click()
    expect(menu).to_be_hidden()


def test_every_form_that_changes_something_is_sent_once() -> None:
    """A second press on a slow box got the fault of a change that the first had made. The card of a key is a file, which may be fetched again."""
    forms = {
        form
        for template in (files("daemon.api.page") / "templates").iterdir()
        for form in re.findall(r"<form [^>]*method=\"post\"(?:[^>{]|{{.*?}})*>", template.read_text())
    }
    assert len(forms) > 20
    assert [form for form in forms if not re.search(r'class="[^"]*\bonce\b', form)] == [
        '<form class="actions" method="post" action="{{ visit.link("/ui/box/key/card") }}">'
    ]


def test_a_form_without_an_answer_can_be_sent_again(person: People, shop: Shop) -> None:
    """The network swallowed it: after half a minute its button works, and what was to be noted is noted once."""
    awa = person("manager")
    page = awa.page
    page.clock.install()
    awa.go("/ui/cash")
    before = shop.get("cash").json()["count"]
    page.fill("[name=amount]", "700")
    page.fill("[name=reason]", "taxi")
    page.route("**/ui/cash*", lambda _: None, times=1)
    button = page.get_by_role("button", name=awa.view.say("Note it"))
    button.click()
    page.clock.fast_forward(1_000)
    expect(button).to_have_attribute("aria-disabled", "true")
    page.clock.fast_forward(31_000)
    expect(button).not_to_have_attribute("aria-disabled", "true")
    button.click()
    awa.sees_message("Noted.")
    assert shop.get("cash").json()["count"] == before + 1


def test_disabling_somebody_is_asked_once_more(person: People, shop: Shop) -> None:
    """One press beside the password's button locked a seller out, in the middle of a sale."""
    tech = person("technician")
    page, say = tech.go("/ui/box/people"), tech.view.say
    confirm = page.get_by_role("button", name=say("Confirm: disable {name}", name="reader"))
    expect(confirm).to_be_hidden()
    page.get_by_label(say("Disable {name}", name="reader"), exact=True).click()
    expect(confirm).to_be_visible()
    assert session_of(shop, "reader")


def test_enter_in_a_field_closes_and_certifies_nothing(person: People, shop: Shop) -> None:
    """Who typed the count to see the difference, or an article of several, and pressed Enter as on a calculator, had closed the day or certified."""
    awa = person("technician")
    page = awa.go("/ui/z")
    before = len(shop.machines[0].certified()), shop.get("reports").json()["count"]
    page.fill("#counted", "5000")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile("/ui/z"))
    awa.go("/ui/sale")
    page.locator("[name=client]").select_option("CC")
    page.locator("[name=group1]").select_option("B")
    page.fill("[name=price1]", "500")
    page.fill("[name=name1]", "Riz")
    page.keyboard.press("Enter")
    page.wait_for_timeout(300)
    expect(page).to_have_url(re.compile("/ui/sale"))
    assert (len(shop.machines[0].certified()), shop.get("reports").json()["count"]) == before
