"""A copy that the next start is to put back."""

import asyncio
from pathlib import Path

import pytest
from support.ledgers.ledger import opened, tamper

from daemon.app.page.files import ORDER, carry_out_order, is_ordered, order_restore
from daemon.core.audit import Actor
from daemon.core.errors import NotFound
from daemon.settings import Settings, load
from daemon.store.maintenance.backup import backup
from daemon.store.tables import audit
from daemon.store.tables.audit import newest_entries

COPY = "mcfd-20260101T000000Z.sqlite3"
WHO = Actor("user:issa", "192.168.1.7")


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """Of a box with a ledger and one copy of it."""
    file = tmp_path / "mcfd.toml"
    file.write_text(
        f'[storage]\npath = "{tmp_path}/l.sqlite3"\n[[machine]]\nnim = "EL02000015-1"\nport = "/dev/null"\n'
        'isf = "1"\noperator_id = "1"\noperator_name = "Caisse 1"\n'
    )
    settings = load(file, {})
    (tmp_path / "backups").mkdir()
    asyncio.run(_note(settings, "authority.created"))
    backup(settings.storage.path, tmp_path / "backups" / COPY, at=1)
    asyncio.run(_note(settings, "configuration.changed"))
    return settings


async def _note(settings: Settings, action: str) -> None:
    async with opened(settings.storage.path) as store:
        await store.ledger.write(audit.add, action, "box", at=1, by=WHO)


def deeds(settings: Settings) -> list[str]:
    """Newest first."""

    async def read() -> list[str]:
        async with opened(settings.storage.path) as store:
            return [entry.action for entry in await store.ledger.read(newest_entries, 100)]

    return asyncio.run(read())


def test_what_was_ordered_is_carried_out_once(settings: Settings) -> None:
    """The ledger is mended by the copy; the order is gone last, so a power cut before that does it over with the same outcome."""
    tamper(settings.storage.path, "UPDATE audit SET subject = 'nobody' WHERE id = 1")
    carry_out_order(settings)
    assert deeds(settings) == ["configuration.changed", "authority.created"]
    order_restore(settings, COPY, WHO, keep_newer=True)
    assert is_ordered(settings)
    order = (settings.storage.path.parent / ORDER).read_bytes()
    for content in (order, b"", order):
        if content:
            (settings.storage.path.parent / ORDER).write_bytes(content)
        carry_out_order(settings)
        assert not is_ordered(settings)
        assert deeds(settings) == ["ledger.restored", "configuration.changed", "authority.created"]


@pytest.mark.parametrize(("keep_newer", "left"), [(True, "configuration.changed"), (False, "ledger.restored")])
def test_a_sound_ledger_stays_if_the_person_says_so(settings: Settings, keep_newer: bool, left: str) -> None:
    """It has all of the copy, and more; else the copy alone takes its place."""
    order_restore(settings, COPY, WHO, keep_newer=keep_newer)
    carry_out_order(settings)
    assert not is_ordered(settings)
    assert deeds(settings) == [left, "authority.created"]


@pytest.mark.parametrize("spoilt", ["copy", "order", "gone"])
def test_what_cannot_be_put_back_leaves_the_ledger(settings: Settings, spoilt: str) -> None:
    """A copy that is damaged or gone, or an order that cannot be read: the ledger stays, and the next start is not held up by it again."""
    order_restore(settings, COPY, WHO, keep_newer=True)
    home = settings.storage.path.parent
    if spoilt == "gone":
        (home / "backups" / COPY).unlink()
    else:
        (home / (ORDER if spoilt == "order" else f"backups/{COPY}")).write_bytes(b"{spoilt")
    carry_out_order(settings)
    assert not is_ordered(settings)
    assert deeds(settings) == ["configuration.changed", "authority.created"]


@pytest.mark.parametrize("name", ["nothing.sqlite3", f"../backups/{COPY}", "../l.sqlite3", ""])
def test_only_a_copy_of_the_box_can_be_ordered(settings: Settings, name: str) -> None:
    """By the name it is listed under, and no path."""
    with pytest.raises(NotFound):
        order_restore(settings, name, WHO, keep_newer=True)
    assert not is_ordered(settings)
