"""The recipe for a dead box (docs/install.md): from the encrypted file to a certified invoice, with a till that trusted the old box."""

import shutil
from pathlib import Path

from support.shop import Machine, Shop, invoice


def test_from_the_stick_to_the_next_invoice(tmp_path: Path) -> None:
    """The till's key and its trust go on, the certified number stays taken, and the next Z goes on after the one on paper."""
    box = tmp_path / "box"
    box.mkdir()
    (tmp_path / "passphrase").write_text("six mots\n")
    phrase = ("--passphrase-file", str(tmp_path / "passphrase"))
    shop = Shop(box, machines=(Machine(tmp_path),), config={"server": {"tls": "internal"}})
    stick = tmp_path / "stick.box.age"
    with shop:
        shop.use_https()
        shop.start()
        assert shop.certify(invoice("F-1")).status_code == 200
        assert shop.close_period().json()["z_number"] == 1
        shop.mcfd("backup", "--all", str(stick), *phrase, check=True)
        assert shop.close_period().json()["z_number"] == 2  # after the backup: only paper knows of it
        shop.kill_daemon()
        shutil.rmtree(box)
        box.mkdir()
        done = shop.mcfd("restore", "--all", str(stick), "--last-z", "2", "--yes", *phrase)
        assert done.returncode == 0, done.stderr
        shop.start_daemon()
        assert shop.certify(invoice("F-1")).json()["code"] == "DUPLICATE_INVOICE"
        assert shop.certify(invoice("F-2")).status_code == 200
        assert shop.close_period().json()["z_number"] == 3
        shop.verify()
