"""Each citation of a decision, or of a section of the protocol, leads somewhere."""

import re
import subprocess
from pathlib import Path

TREE = Path(__file__).parents[2]
CITED = re.compile(r"\bdecisions? (\d+(?:(?:, | and |, and | to )\d+)*)")
SECTION = re.compile(r"\bprotocol(?: section)? (\d)(?:\.(\d))?\b")
PAGE = re.compile(r"""(?<![\w"'/.-])(?:docs/)?([a-z][a-z-]*(?:\.fr)?\.md)\b""")
"""Not a file that a program writes: that stands in quotation marks of its own."""
KINDS = ("*.py", "*.sql", "*.md", "*.toml", "*.html", "*.service", "*.timer", "Makefile")
EXAMPLES = {"x.md"}


def _files() -> dict[str, str]:
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--", *KINDS], cwd=TREE, check=True, capture_output=True, text=True
    ).stdout.split("\0")
    return {name: (TREE / name).read_text(encoding="utf-8") for name in listed if name and (TREE / name).exists()}


def test_each_decision_that_is_cited_is_in_the_register() -> None:
    """`docs/decisions.md` has every number that code, tests and documents cite, each once."""
    register = re.findall(r"^\*\*(\d+)\.\*\* ", (TREE / "docs/decisions.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert len(register) == len(set(register)) >= 40
    unknown = {
        (name, number)
        for name, text in _files().items()
        for cited in CITED.findall(text)
        for number in re.findall(r"\d+", cited)
        if number not in register
    }
    assert unknown == set()


def test_each_section_of_the_protocol_that_is_cited_is_there() -> None:
    """`docs/protocol.md` has the sections and numbered points that the driver and the simulator cite."""
    text = (TREE / "docs/protocol.md").read_text(encoding="utf-8")
    sections = {
        title[0]: set(re.findall(r"^(\d)\. ", body, re.MULTILINE))
        for title, body in re.findall(r"^## (\d\. [^\n]+)\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
    }
    unknown = {
        (name, section, point)
        for name, content in _files().items()
        for section, point in SECTION.findall(content)
        if section not in sections or (point and point not in sections[section])
    }
    assert unknown == set()


def test_each_document_that_is_named_is_there() -> None:
    """A page that code or a document names is in the tree."""
    there = {path.name.lower() for path in [*TREE.rglob("*.md")] if ".venv" not in path.parts}
    unknown = {
        (name, page)
        for name, text in _files().items()
        if name != "CHANGELOG.md"  # it tells of what was, too
        for page in PAGE.findall(text)
        if page.lower() not in there | EXAMPLES
    }
    assert unknown == set()
