"""The stylesheet that is vendored has every class of Tabler's that a template uses."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[5]
TEMPLATES = ("common/web/templates", "daemon/api/page/templates", "headquarters/page/templates")


def test_no_class_is_without_its_rules() -> None:
    """After a change of a template's classes `make web` is to be run: whatever begins as Tabler's classes do stands in the sheet."""
    sheet = (ROOT / "common/web/static/tabler.css").read_text() + (ROOT / "common/web/static/kit.css").read_text()
    expected = set(re.findall(r"\.([a-zA-Z][\w-]*)", sheet))
    used = {
        name
        for folder in TEMPLATES
        for file in (ROOT / folder).glob("*.html")
        for attribute in re.findall(r'class="([^"{]*)', file.read_text())
        for name in attribute.split()
    }
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
    named = {
        name
        for folder in TEMPLATES
        for file in (ROOT / folder).glob("*.html")
        for name in re.findall(r'icon\("([a-z0-9-]+)"', file.read_text())
    }
    assert {name for name in named if f'"{name}":' not in shapes} == set()
