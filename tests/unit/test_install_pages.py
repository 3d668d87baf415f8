import re
from pathlib import Path

from daemon.cli import COMMANDS
from daemon.cli.commands.probe import command as probe
from daemon.cli.commands.recording import command as recording

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGES = {language: (DOCS / name).read_text() for language, name in (("en", "install.md"), ("fr", "install.fr.md"))}


def typed(page: str) -> list[str]:
    """Every command to be typed, in fences, without what a language names in its own words."""
    commands = re.findall(r"^\$ (.+)", page, re.MULTILINE)
    return [command.replace("CLE=", "KEY=") for command in commands]


def test_each_command_of_the_first_contact_exists() -> None:
    """With options that there are."""
    lines = re.findall(r"^    (sudo .+)$", (DOCS / "first-contact.fr.md").read_text(), re.MULTILINE)
    assert len(lines) == 4
    for line in lines:
        words = line.split()
        command = {"probe": probe, "recording": recording}[words[3]]
        assert words[1:3] == ["mcfd", "machine"]
        expected = {option for parameter in command.params for option in parameter.opts}
        assert {word for word in words if word.startswith("--")} <= expected


def test_both_languages_type_the_same() -> None:
    """A technician who reads French does nothing else than one who reads English."""
    assert typed(PAGES["fr"]) == typed(PAGES["en"])
    assert len(typed(PAGES["en"])) >= 8


def test_every_command_of_ours_exists() -> None:
    """No page tells anybody to type a command that `mcfd` does not have."""
    for page in PAGES.values():
        named = set(re.findall(r"(?:sudo |`)mcfd ([a-z-]+)", page))
        assert {"setup", "doctor", "keys", "restore"} <= named <= set(COMMANDS)
