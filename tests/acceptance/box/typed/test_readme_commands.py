"""What the README, in English and in French, says to type after `make demo`, typed in order by a shell."""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.shop import Shop
from support.tools import need

TREE = Path(__file__).parents[4]
READMES = ("README.md", "README.fr.md")


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, Shop]]:
    """A clone in which `make demo` is running: its environment, and the box in `.demo`."""
    need("bash", "curl")
    folder = tmp_path_factory.mktemp("clone")
    (folder / ".demo").mkdir()
    (folder / ".venv").symlink_to(sys.prefix)
    with Shop(folder / ".demo") as shop:
        yield folder, shop.start()


def typed(clone: tuple[Path, Shop], script: str, stdin: str = "") -> str:
    """What the shell showed. `sudo` does nothing here, and the port is that of this box."""
    folder, shop = clone
    script = script.replace(":8480/", f":{shop.port}/").replace("sudo ", "")
    command = ["bash", "-euc", script]
    done = subprocess.run(command, cwd=folder, input=stdin, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def blocks(readme: str) -> list[str]:
    return re.findall(r"```sh\n(.*?)```", (TREE / readme).read_text(), re.DOTALL)


@pytest.mark.parametrize("readme", READMES)
def test_the_first_invoice(clone: tuple[Path, Shop], readme: str) -> None:
    """The two commands are in the Makefile; a key, then the invoice: the receipt that the page shows, field by field as far as it shows them."""
    makes, first, _ = blocks(readme)
    assert re.findall(r"^make (\w+)", makes, re.MULTILINE) == ["demo", "test"]
    receipt = json.loads(typed(clone, first))
    (example,) = re.findall(r"```json\n(.*?)```", (TREE / readme).read_text(), re.DOTALL)
    example = json.loads(example)
    for field in ("invoiceType", "totalTtc", "nim", "ifu", "taxDetails"):
        assert receipt[field] == example[field], field
    assert set(example) - {"…"} <= set(receipt)


@pytest.mark.long
@pytest.mark.parametrize(("readme", "name"), [("README.md", "awa"), ("README.fr.md", "ali")])
def test_a_person_for_the_page(clone: tuple[Path, Shop], readme: str, name: str) -> None:
    """The command that makes a person; the password, which is typed at a terminal, comes from a pipe here."""
    *_, command = blocks(readme)
    command = command.replace("--role manager", "--role manager --password-stdin").replace("awa", name)
    typed(clone, "export PATH=$PWD/.venv/bin:$PATH MCFD_CONFIG=.demo/mcfd.toml\n" + command, "un mot de passe sur\n")
    assert name in typed(clone, "MCFD_CONFIG=.demo/mcfd.toml .venv/bin/mcfd users list")
