"""A screen lets others at the loop between its pieces."""

from __future__ import annotations

import asyncio
import re
from datetime import date
from pathlib import Path
from types import SimpleNamespace

import pytest
from jinja2 import ChoiceLoader, DictLoader, Environment, FileSystemLoader
from jinja2.exceptions import UndefinedError

from common.language import Speaker
from common.numbers import money
from daemon.api.page import rendering
from daemon.api.page.downloads import Day
from daemon.api.page.rendering import Rendering, compile_template, environment

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


async def _turns(over: asyncio.Event) -> int:
    """How often somebody else had the loop until then."""
    count = 0
    while not over.is_set():
        await asyncio.sleep(0)
        count += 1
    return count


@pytest.mark.usefixtures("one_piece_at_a_time")
async def test_others_have_the_loop_between_two_pieces_of_a_screen() -> None:
    """The screen is whole, and somebody else had a turn for each of its rows."""
    await asyncio.to_thread(compile_template, "rows")
    over = asyncio.Event()
    beside = asyncio.create_task(_turns(over))
    text = await Rendering().screen("rows", {"rows": range(ROWS)})
    over.set()
    assert text.decode() == "".join(f"<li>{row}</li>" for row in range(ROWS))
    assert await beside >= ROWS


@pytest.mark.usefixtures("one_piece_at_a_time")
async def test_a_template_is_compiled_once_for_all_who_wait_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Twenty strangers who open the login at once took a thread each to compile it, and a fifth of a second of a sale."""
    compiled: list[str] = []

    def counted(name: str) -> None:
        compiled.append(name)
        compile_template(name)

    monkeypatch.setattr(rendering, "compile_template", counted)
    screens = Rendering()
    texts = await asyncio.gather(*(screens.screen("rows", {"rows": [number]}) for number in range(20)))
    assert texts == [f"<li>{number}</li>".encode() for number in range(20)]
    assert compiled == ["rows"]


@pytest.mark.usefixtures("one_piece_at_a_time")
async def test_screens_take_turns() -> None:
    """However many people click, a turn of the loop holds one slice: the second screen begins when the first is whole."""
    looked_at: list[str] = []

    def rows(name: str) -> list[object]:
        class Row:
            def __str__(self) -> str:
                looked_at.append(name)
                return name

        return [Row() for _ in range(ROWS)]

    screens = Rendering()
    first, second = (screens.screen("rows", {"rows": rows(name)}) for name in "ab")
    await asyncio.gather(first, second)
    assert "".join(looked_at) == ROWS * looked_at[0] + ROWS * looked_at[-1]


@pytest.mark.usefixtures("one_piece_at_a_time")
async def test_a_screen_that_fails_half_way_holds_up_no_other() -> None:
    """Its error is the caller's, and the next screen has its turn."""
    screens = Rendering()
    with pytest.raises(UndefinedError):
        await screens.screen("broken", {"rows": range(ROWS)})
    assert await screens.screen("rows", {"rows": (1,)}) == b"<li>1</li>"


def test_a_template_is_compiled_with_all_that_it_needs() -> None:
    """Nothing is left to be compiled on the loop when a screen is rendered: what it extends, includes and imports is ready."""
    compile_template("today.html")
    assert {"today.html", "frame.html", "today_glance.html", "today_details.html", "macros.html"} <= rendering._compiled


@pytest.mark.parametrize("name", sorted(file.name for file in TEMPLATES.iterdir()))
def test_every_template_of_the_page_compiles(name: str) -> None:
    """And names only templates that are there."""
    compile_template(name)
    assert environment().get_template(name).name == name


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
    visible: dict[str, object] = {
        "weeks": [days],
        "most": 1500,
        "closures": [],
        "closed": [],
        "month_text": "2026-11",
        "before": "",
        "after": "",
    }
    content = {"say": Speaker("fr"), "visit": SimpleNamespace(link=lambda *_, **__: ""), "month": str, "moment": str}
    words = "".join(template.blocks["main"](template.new_context(visible | content)))
    assert re.findall(r'without-z"><a href="" title="([^"]*)"', words) == [f"{money(1500)}, sans Z"]
    assert words.count(", sans Z") == 1


@pytest.mark.parametrize("waiting", ["", "0.9.0-1"])
def test_the_screen_of_updates_names_a_version_with_another_core(waiting: str) -> None:
    """With the command that takes it; nothing of it where none waits."""
    frame = DictLoader({"frame.html": "{% block main %}{% endblock %}"})
    jinja = environment().overlay(loader=ChoiceLoader([frame, FileSystemLoader(TEMPLATES)]), cache_size=0)
    visit = SimpleNamespace(link=lambda path: path, may=lambda _: True)
    text = jinja.get_template("box_update.html").render(
        visit=visit,
        here="/ui/box/update",
        say=Speaker("en"),
        version="0.8.0",
        waiting=waiting,
        core_version="4",
        core_digest="",
    )
    assert ("Version 0.9.0-1 waits for you" in text) == bool(waiting)
    assert ("sudo mcfd upgrade --core" in text) == bool(waiting)
