"""What the README tells to type after `make demo`, typed in order by a shell."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.shop import Shop
from support.tools import need

README = (Path(__file__).parents[4] / "README.md").read_text()


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
    """What the shell showed. `sudo` is nobody here, and the port is that of this box."""
    folder, shop = clone
    script = script.replace(":8480/", f":{shop.port}/").replace("sudo ", "")
    command = ["bash", "-euc", script]
    done = subprocess.run(command, cwd=folder, input=stdin, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def block(after: str) -> str:
    return str(re.findall(r"```sh\n(.*?)```", README.partition(after)[2], re.DOTALL)[0])


def test_the_first_invoice(clone: tuple[Path, Shop]) -> None:
    """A key, then the invoice: the receipt that the page shows, field by field as far as it shows them."""
    told = json.loads(typed(clone, block("## The API by example")))
    (shown,) = re.findall(r"```json\n(\{\"codeSecef.*?)```", README, re.DOTALL)
    example = json.loads(shown)
    for field in ("invoiceType", "totalTtc", "nim", "ifu", "taxDetails"):
        assert told[field] == example[field], field
    assert set(example) - {"…"} <= set(told)


def test_a_person_for_the_page(clone: tuple[Path, Shop]) -> None:
    """The command of the page's section; the password, which is asked at a terminal, comes from a pipe here."""
    command = block("## The shop's page").replace("--role manager", "--role manager --password-stdin")
    typed(clone, "export PATH=$PWD/.venv/bin:$PATH MCFD_CONFIG=.demo/mcfd.toml\n" + command, "un mot de passe sur\n")
    assert "awa" in typed(clone, "MCFD_CONFIG=.demo/mcfd.toml .venv/bin/mcfd users list")
