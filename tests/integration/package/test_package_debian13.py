"""A shop's box goes from Debian 12 to 13, with its ledger, as its owner would do it: `apt dist-upgrade`."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.box.debian import BOOKWORM, TRIXIE, dist_upgrade
from support.box.package import LIB, built, other_version, uncompressed
from support.box.shop import Shop, new_shop

pytestmark = pytest.mark.long


def as_it_was_first(root: Path) -> None:
    """The layout of the first packages: everything in /opt."""
    (root / "opt").mkdir()
    (root / "opt/mcfd").mkdir()
    shutil.move(root / LIB, root / "opt/mcfd/lib")
    for path in (*(root / "DEBIAN").glob("p*"), root / "usr/bin/mcfd"):
        moved = path.read_text().replace("/usr/lib/mcfd.previous", "/opt/mcfd.previous")
        path.write_text(moved.replace("/usr/lib/mcfd", "/opt/mcfd/lib"))


@pytest.fixture
def shop() -> Iterator[Shop]:
    with new_shop(lambda: other_version(built(), "0.0.1", as_it_was_first), BOOKWORM) as shop:
        yield shop


@pytest.mark.timeout(900)  # a whole Debian is upgraded: a minute on a quiet box
def test_a_box_with_a_ledger_goes_from_debian_12_to_13(shop: Shop) -> None:
    """Debian 12 sells with the first package; the upgrade of mcfd moves it to its new place; `apt dist-upgrade` to Debian 13 keeps the
    daemon, restarts it with the new Python, and the old Python can go. Everything that was sold is there, and it sells on."""
    box = shop.box
    shop.sell()
    box.install(uncompressed(built()))
    assert not box.path("/opt/mcfd").exists()
    shop.sell()
    shop.assert_nothing_is_lost()
    assert interpreter(shop) == "/usr/bin/python3.11"

    dist_upgrade(box, TRIXIE)
    assert "13" in box.run("cat", "/etc/debian_version").stdout
    assert box.run("dpkg-query", "-W", "-f", "${Status}", "mcfd").stdout == "install ok installed"
    assert (shop.unit("ActiveState"), interpreter(shop)) == ("active", "/usr/bin/python3.13")
    assert list(box.path(f"/{LIB}/daemon/__pycache__").glob("*.cpython-313.pyc"))
    box.run("apt-get", "-y", "autoremove", "--purge")
    assert not box.path("/usr/bin/python3.11").exists()
    shop.unplug()
    shop.plug_in()
    shop.sell()
    shop.assert_nothing_is_lost()

    box.switch_off()
    box.boot()
    shop.plug_in()
    shop.sell()
    shop.assert_nothing_is_lost()


def interpreter(shop: Shop) -> str:
    """The program of the running daemon."""
    return shop.box.run("readlink", f"/proc/{shop.unit('MainPID')}/exe").stdout.strip()
