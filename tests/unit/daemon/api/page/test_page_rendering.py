"""A screen lets others at the loop between its pieces; templates compile, and find their classes and icons."""

import re
from datetime import date
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from jinja2 import ChoiceLoader, DictLoader, Environment, FileSystemLoader
from jinja2.exceptions import UndefinedError

from common.language import Speaker
from common.language.reasons import HUNG_UP, PORT_BUSY, PORT_UNAVAILABLE, PORT_VANISHED
from common.numbers import money
from daemon.api.page import rendering
from daemon.api.page.downloads import Day
from daemon.api.page.rendering import Rendering, compile_template, environment, fault_of
from daemon.api.page.views.sales_state import _call, _is_present
from daemon.core.errors import FieldError, InvalidRequest

TEMPLATES = Path(rendering.__file__).parent / "templates"
ROWS = 40


@pytest.fixture
def one_piece_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if each piece took longer than a slice; rows as a template has them, and one that ends in an error."""
    jinja = Environment(
        autoescape=True,
        loader=DictLoader(
            {
                "rows": "{% for row in rows %}<li>{{ row }}</li>{% endfor %}",
                "broken": "{% for row in rows %}{{ row }}{% endfor %}{{ rows.nothing.there }}",
            }
        ),
    )
    monkeypatch.setattr(rendering, "environment", lambda: jinja)
    monkeypatch.setattr(rendering, "_compiled", set())
    monkeypatch.setattr(rendering, "SLICE", 0.0)


@pytest.mark.usefixtures("one_piece_at_a_time")
async def test_a_screen_that_fails_half_way_holds_up_no_other() -> None:
    """Its error is the caller's, and the next screen has its turn."""
    screens = Rendering()
    with pytest.raises(UndefinedError):
        await screens.screen("broken", {"rows": range(ROWS)})
    assert await screens.screen("rows", {"rows": (1,)}) == b"<li>1</li>"


def test_a_fault_names_fields_as_the_screen_does() -> None:
    """A cashier reads no path of the API, and French has its space before a semicolon."""
    faults = [
        FieldError("items[1].quantity", "trop"),
        FieldError("customer.ifu", "manque"),
        FieldError("customer.name", "manque"),
        FieldError("payments[0].amount", "trop"),
        *(FieldError(name, "vide") for name in ("invoice", "items", "sure")),
    ]
    words = fault_of(InvalidRequest(faults)).message(Speaker("fr")).replace("\N{NO-BREAK SPACE}", " ")
    assert (
        words.partition("(")[2]
        == "ligne 2 : Quantité : trop ; IFU : manque ; Nom : manque ; Paiement : trop ; Facture : vide ; Lignes : vide ; Confirmation : vide)."
    )


@pytest.mark.parametrize("name", sorted(file.name for file in TEMPLATES.iterdir()))
def test_every_template_of_the_page_compiles(name: str) -> None:
    """And names only templates that are there."""
    compile_template(name)
    assert environment().get_template(name).name == name


@pytest.mark.parametrize("file", sorted(TEMPLATES.iterdir()), ids=lambda file: file.name)
def test_enter_in_a_field_decides_nothing(file: Path) -> None:
    """A browser presses a form's first button: where there are several decisions, it is a disabled one."""
    for form in re.findall(r"<form.*?</form>", file.read_text("utf-8"), re.DOTALL):
        buttons = re.findall(r"<button[^>]*>", form)
        if sum(' value="' in button for button in buttons) > 1:
            assert "disabled" in buttons[0]


def test_a_day_without_a_z_is_told_in_words_too() -> None:
    """The calendar's frame is seen only; its words are read to who cannot see it. A day that has its Z, is not over or sold nothing has none."""
    when = date(2026, 11, 20)
    days = [
        Day(when, 1500, (), is_over=True),
        Day(when, 1500, (7,), is_over=True),
        Day(when, 1500, (), is_over=False),
        Day(when, 0, (), is_over=True),
    ]
    template = environment().get_template("closures.html")
    month = {"month_text": "2026-11", "before": "", "after": ""}
    visible: dict[str, object] = {"weeks": [days], "most": 1500, "closures": [], "closed": [], "elsewhere": "", **month}
    content = {
        "language": "fr",
        "say": Speaker("fr"),
        "visit": SimpleNamespace(link=lambda *_, **__: ""),
        "month": str,
        "moment": str,
        "warning": str,
        "months_nav": lambda *_: "",
    }
    words = "".join(template.blocks["main"](template.new_context(visible | content)))
    assert re.findall(r'without-z"><a href="" title="([^"]*)"', words) == [f"{money(1500)}, sans Z"]
    assert words.count(", sans Z") == 1


@pytest.mark.parametrize("waiting", ["", "0.9.0-1"])
def test_the_screen_of_updates_names_a_version_with_another_core(waiting: str) -> None:
    """With the command that takes it; nothing of it where none waits."""
    frame = DictLoader({"frame.html": "{% block main %}{% endblock %}"})
    jinja = environment().overlay(loader=ChoiceLoader([frame, FileSystemLoader(TEMPLATES)]), cache_size=0)
    visit = SimpleNamespace(link=lambda path: path, may=lambda _: True, deps=SimpleNamespace(version="0.9.0"))
    text = jinja.get_template("box_update.html").render(
        visit=visit,
        here="/ui/box/update",
        say=Speaker("en"),
        waiting=waiting,
        core_version="4",
        core_digest="",
    )
    assert ("Version 0.9.0-1 waits for you" in text) == bool(waiting)
    assert ("sudo mcfd upgrade --core" in text) == bool(waiting)


@pytest.mark.parametrize(
    ("size", "words"),
    [(0, "0 ko"), (180, "1 ko"), (999_000, "999 ko"), (9_999_999_999, "9 999 Mo"), (68_400_000_000, "68 Go")],
)
def test_a_size_is_told_in_the_unit_that_people_use(size: int, words: str) -> None:
    macros: Any = environment().get_template("macros.html").module
    assert (
        macros.files_size(size, Speaker("fr"))
        .replace("\N{NO-BREAK SPACE}", " ")
        .replace("\N{NARROW NO-BREAK SPACE}", " ")
        == words
    )


def test_a_telephone_number_in_the_banner_is_not_broken_over_two_lines() -> None:
    """Words before it may be."""
    page = SimpleNamespace(support="Moussa au 70 12 34 56")
    visit: Any = SimpleNamespace(say=Speaker("en"), page=page)
    assert _call(visit, "no answer") == "no answer; call Moussa au 70\xa012\xa034\xa056."


def test_a_port_that_another_program_has_is_no_fault_of_the_cable() -> None:
    """The banner names the reason; only where nothing answers it says to look at cable and power."""
    reasons = (
        PORT_UNAVAILABLE(port="/dev/ttyUSB0", cause=PORT_BUSY),
        PORT_VANISHED(port="/dev/ttyUSB0", cause=HUNG_UP),
    )
    assert [_is_present(reason) for reason in reasons] == [True, False]


ROOT = Path(__file__).parents[5]
FOLDERS = ("common/web/templates", "daemon/api/page/templates", "headquarters/page/templates")


def named(pattern: str) -> set[str]:
    """Whatever a template has of that."""
    files = (file for folder in FOLDERS for file in (ROOT / folder).glob("*.html"))
    return {found for file in files for found in re.findall(pattern, file.read_text())}


def test_no_class_is_without_its_rules() -> None:
    """After a change of a template's classes `make web` is to be run: whatever begins as Tabler's classes do stands in the sheet."""
    sheet = (ROOT / "common/web/static/tabler.css").read_text() + (ROOT / "common/web/static/kit.css").read_text()
    expected = set(re.findall(r"\.([a-zA-Z][\w-]*)", sheet))
    used = {name for attribute in named(r'class="([^"{]*)') for name in attribute.split()}
    tablers = {
        name
        for name in used
        if re.match(
            r"(btn|card|table|form|badge|alert|nav-(?:link|tabs)|m[btxy]?-\d|p-\d|w-|text-|bg-|container|visually)",
            name,
        )
    }
    assert tablers - expected == set()


def test_every_icon_that_is_named_is_there() -> None:
    """`make web` takes them from Tabler by their names in templates."""
    shapes = (ROOT / "common/web/static/icons.json").read_text()
    assert {name for name in named(r'icon\("([a-z0-9-]+)"') if f'"{name}":' not in shapes} == set()
