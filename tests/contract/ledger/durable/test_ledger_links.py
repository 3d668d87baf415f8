"""One ledger has one daemon and one high-water file, whatever names lead to it (symbolic links, hard links)."""

import os
import shutil
from pathlib import Path

import pytest
from support.ledgers.ledger import NIM, START, Till, opened, opened_till

from common.language import translate
from daemon.core.errors import LedgerUnusable
from daemon.store.maintenance.backup import backup, restore
from daemon.store.sqlite.high_water import mark_path


def linked(path: Path, folder: Path, kind: str) -> Path:
    """Another name of the ledger, in another folder."""
    folder.mkdir()
    other = folder / "other.sqlite3"
    if kind == "hard":
        os.link(path, other)
    elif kind == "symbolic":
        other.symlink_to(path)
    elif kind == "chain":
        (folder / "between").symlink_to(path)
        other.symlink_to("between")
    else:
        (folder / "way").symlink_to(path.parent)
        other = folder / "way" / path.name
    return other


KINDS = ("symbolic", "chain", "folder", "hard")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("first", ["name", "link"])
async def test_a_second_daemon_is_refused_under_another_name(path: Path, tmp_path: Path, kind: str, first: str) -> None:
    """Neither a start nor a restore while a daemon works on the same file by another name; afterwards both."""
    async with opened(path) as store:
        await Till.of(store)
    backup(path, tmp_path / "copy", at=START)
    names = (path, linked(path, tmp_path / "elsewhere", kind))
    one, other = names if first == "name" else names[::-1]
    async with opened(one):
        with pytest.raises(LedgerUnusable, match="in use by another mcfd") as refusal:
            async with opened(other):
                pass
        assert "est utilisé par un autre mcfd" in translate(refusal.value, "fr")
        with pytest.raises(LedgerUnusable, match="in use by another mcfd"):
            restore(tmp_path / "copy", other, at=START)
    async with opened(other):
        pass


@pytest.mark.parametrize("kind", ["symbolic", "chain", "folder"])
async def test_numbers_are_remembered_beside_the_ledger_itself(path: Path, tmp_path: Path, kind: str) -> None:
    """Under whichever name a Z was made, a restore under another one goes on after it; the links stay links."""
    async with opened(path) as store:
        await (await Till.of(store)).close()
    backup(path, tmp_path / "copy", at=START)
    other = linked(path, tmp_path / "elsewhere", kind)
    assert mark_path(other) == mark_path(path)
    async with opened(other) as store:
        assert (await (await Till.of(store)).close()).z_number == 2
    restored = restore(tmp_path / "copy", other, at=START)
    assert other.resolve() == path
    assert restored.aside.parent == path.parent
    async with opened(path) as store:
        assert (await (await Till.of(store)).close()).z_number == 3


async def test_what_was_remembered_beside_a_link_counts(path: Path, tmp_path: Path) -> None:
    """Version 0.1.0 kept its high-water file beside the name in the configuration."""
    async with opened_till(path) as (store, till):
        await store.ledger.reconcile(till.book, till.state(), unexplained=0, at=till.at)
        await till.close()
    backup(path, tmp_path / "copy", at=START)
    async with opened(path) as store:
        await (await Till.of(store, NIM)).close()
    other = linked(path, tmp_path / "elsewhere", "symbolic")
    mark_path(path).rename(other.with_name(other.name + ".high-water"))
    shutil.copy(tmp_path / "copy", path)
    async with opened(other) as store:
        assert (await (await Till.of(store)).close()).z_number == 3
