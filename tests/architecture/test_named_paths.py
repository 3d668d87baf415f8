"""What the documents say of the tree's files, and where their links lead."""

import re
import subprocess
from functools import cache
from pathlib import Path

import pytest

TREE = Path(__file__).parents[2]
GENERATED = {"build", "dist"}
TOP = [
    path.name
    for path in sorted(TREE.iterdir())
    if path.is_dir() and not path.name.startswith(".") and path.name not in GENERATED
]
DOCUMENTS = [path for path in sorted([*TREE.glob("*.md"), *TREE.glob("docs/*.md")]) if path.name != "CHANGELOG.md"]
"""The changelog tells of what was, too."""
NAMED = re.compile(rf"`((?:{'|'.join(TOP)})/[\w./*-]+)`")
SHORT = re.compile(r"`((?:[a-z_]\w*/)*[a-z_]\w*\.(?:py|sql))`")
"""A module by the end of its path, as `app/sandbox.py`."""
PAGE = re.compile(r"docs/([\w.-]+\.md)")
LINK = re.compile(r"\]\((?!https?:)([^()\s#]*)(?:#([^()\s]+))?\)")
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
PLACEHOLDERS = {"daemon/store/schema/NNNN_name.sql"}


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_files_that_a_document_names_are_there(document: Path) -> None:
    """Each path in it that begins with a folder of the tree leads somewhere."""
    named = set(NAMED.findall(document.read_text(encoding="utf-8"))) - PLACEHOLDERS
    assert [each for each in sorted(named) if not any(TREE.glob(each))] == []


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_modules_that_a_document_names_in_short_are_there(document: Path) -> None:
    """The end of a path is that of a tracked file."""
    tracked = ["/" + name for name in _listed("*.py", "*.sql")]
    named = set(SHORT.findall(document.read_text(encoding="utf-8")))
    assert [each for each in sorted(named) if not any(path.endswith("/" + each) for path in tracked)] == []


@pytest.mark.parametrize(("package", "examples"), [("mcfd", ["mcfd"]), ("mcfd-hq", ["hq", "relay"])])
def test_pages_that_a_package_names_are_in_it(package: str, examples: list[str]) -> None:
    """Those of its units, and of the examples of its configuration."""
    lines = (TREE / f"debian/{package}.docs").read_text().split()
    shipped = {path.name for line in lines for path in TREE.glob(line)}
    units = "".join(path.read_text() for path in (TREE / "systemd").rglob("*.*") if path.is_file())
    named = set(re.findall(rf"/usr/share/doc/{package}/([\w.-]+\.md)", units))
    named |= {page for name in examples for page in PAGE.findall((TREE / f"config/{name}.toml").read_text())}
    assert len(named) > 2
    assert named <= shipped


@cache
def _listed(*kinds: str) -> list[str]:
    done = subprocess.run(["git", "ls-files", "-z", *kinds], cwd=TREE, check=True, capture_output=True, text=True)
    return [name for name in done.stdout.split("\0") if name]


def pages() -> dict[Path, str]:
    """Every page of the tree, vendored ones apart, with its text outside of code."""
    found = (TREE / name for name in _listed("*.md"))
    return {page: re.sub(r"(?ms)^```.*?^```", "", page.read_text("utf-8")) for page in found if page.exists()}


def anchors(text: str) -> set[str]:
    """Of its headings, as a forge and the site make them."""
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in HEADING.findall(text)}


def dead_links(texts: dict[Path, str]) -> set[str]:
    """Links to a file that is not there, or to a heading that its page does not have."""
    dead = set()
    for page, text in texts.items():
        for place, anchor in LINK.findall(text):
            target = (page.parent / place).resolve() if place else page
            if not (target in texts or target.exists()) or (anchor and anchor not in anchors(texts.get(target, ""))):
                dead.add(f"{page.name}: {place}#{anchor}")
    return dead


def test_each_link_leads_to_a_file_and_to_a_heading() -> None:
    """Of every page, those beside clients and packages too, which the site does not have."""
    assert dead_links(pages()) == set()
