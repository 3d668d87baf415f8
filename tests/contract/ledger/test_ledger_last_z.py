"""Whether the last Z of a book has to be asked for is a fact of that book: no restore, start or empty ledger in between answers it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from support.ledgers.ledger import IFU, NIM, START, Till, opened, opened_till, query

from daemon.core.clock import DAY
from daemon.core.errors import InvalidRequest, ZNumberUnknown
from daemon.core.machine.state import FiscalCounters
from daemon.store.maintenance.backup import backup, restore
from daemon.store.maintenance.numbers import hear
from daemon.store.maintenance.verify import verify
from daemon.store.sqlite.high_water import HighWater, book_name, mark_path
from daemon.store.store import Store
from daemon.store.tables.book.books import book_state
from daemon.store.tables.keys import create_key

OTHER = "EL02000099-1"


async def meet(store: Store, nim: str = NIM, ifu: str = IFU) -> Till:
    till = await Till.of(store, nim)
    state = till.state()
    await store.ledger.reconcile(till.book, type(state)(nim, ifu, *list_of(state)), unexplained=0, at=till.at)
    return till


def list_of(state: object) -> list[object]:
    return [getattr(state, name) for name in ("time", "counters", "rates", "last")]


async def close(path: Path, count: int, *nims: str) -> list[int]:
    """That many sales and Z on each machine; the numbers of the last round."""
    numbers: list[int] = []
    async with opened(path) as store:
        for _ in range(count):
            numbers = []
            for nim in nims or (NIM,):
                till = await meet(store, nim)
                await till.sell()
                numbers.append((await till.close()).z_number)
    return numbers


async def asks(path: Path, *nims: str) -> list[bool]:
    """Whether a Z is refused on each machine until somebody says the last one."""
    found = []
    async with opened(path) as store:
        for nim in nims or (NIM,):
            till = await meet(store, nim)
            try:
                await till.close()
            except ZNumberUnknown:
                found.append(True)
            else:
                found.append(False)
    return found


async def started(path: Path) -> None:
    """An empty ledger, by a start without a machine or by `mcfd keys create`."""
    async with opened(path):
        pass


async def met(path: Path) -> None:
    """One that has met the machine."""
    async with opened(path) as store:
        await meet(store)


async def create_keys(path: Path) -> None:
    async with opened(path, opening="command") as store:
        await store.ledger.write(create_key, NIM, "live", "till", at=START)


@pytest.fixture
async def copies(tmp_path: Path) -> tuple[Path, Path]:
    """Monday's with two Z, Tuesday's with three; on the lost disk there were four."""
    old, monday, tuesday = tmp_path / "old" / "ledger.sqlite3", tmp_path / "monday", tmp_path / "tuesday"
    old.parent.mkdir()
    await close(old, 2)
    backup(old, monday, at=START)
    await close(old, 1)
    backup(old, tuesday, at=START + 1)
    await close(old, 1)
    shutil.rmtree(old.parent)
    return monday, tuesday


@pytest.mark.parametrize("before", [started, met, create_keys])
async def test_an_empty_ledger_on_a_new_disk_knows_no_number(
    path: Path, copies: tuple[Path, Path], before: Callable[[Path], object]
) -> None:
    """X5: whatever made it, the copy that takes its place asks; then it goes on after what was said."""
    await before(path)
    assert restore(copies[0], path, at=START).asks == (NIM,)
    assert await asks(path) == [True]
    assert await asks(path) == [True]
    async with opened_till(path) as (store, till):
        await store.decisions.say_last_z(till.book, 4)
        assert (await till.close()).z_number == 5
    assert verify(path).problems == ()


@pytest.mark.parametrize("is_started", [False, True])
@pytest.mark.parametrize(
    "order",
    [(0, 1), *(pytest.param(order, marks=pytest.mark.long) for order in ((0, 0), (1, 0), (1, 1, 0), (0, 1, 0)))],
)
@pytest.mark.parametrize("lost", ["nothing", "marks", "ledger"])
async def test_a_question_survives_every_further_restore(
    path: Path, copies: tuple[Path, Path], order: tuple[int, ...], is_started: bool, lost: str
) -> None:
    """Y1: a rerun after a cut, Tuesday's copy after Monday's or the other way round, with a start in between or not, the high-water file or the
    ledger lost in between or not."""
    for which in order:
        restore(copies[which], path, at=START)
        if is_started:
            assert await asks(path) == [True]
        if lost == "marks":
            mark_path(path).unlink(missing_ok=True)
        elif lost == "ledger" and which != order[-1]:
            for name in path.parent.glob(path.name + "*"):
                if not name.name.endswith(".high-water"):
                    name.unlink()
    assert await asks(path) == [True]


@pytest.mark.parametrize("how", ["said", "with restore", "upstream"])
@pytest.mark.parametrize("which", [0, 1])
async def test_an_answer_survives_further_restores_too(
    path: Path, copies: tuple[Path, Path], how: str, which: int
) -> None:
    """Once it is known here which was the last, no copy asks again, and each goes on after what was given since."""
    restore(copies[0], path, at=START, last_z=4 if how == "with restore" else None)
    async with opened(path) as store:
        till = await meet(store)
        if how == "said":
            await store.decisions.say_last_z(till.book, 4)
        elif how == "upstream":
            assert await store.decisions.write(hear, till.book, 4)
        assert (await till.close()).z_number == 5
    assert restore(copies[which], path, at=START).asks == ()
    assert await close(path, 1) == [6]
    assert restore(copies[which], path, at=START).asks == ()
    assert await close(path, 1) == [7]
    assert verify(path).problems == ()


async def test_an_answer_on_another_disk_is_none_here(path: Path, tmp_path: Path, copies: tuple[Path, Path]) -> None:
    """A copy that was made after the question was answered there asks again on a disk of which nothing is known, and beside a question that is open."""
    other = tmp_path / "other" / "ledger.sqlite3"
    other.parent.mkdir()
    restore(copies[0], other, at=START, last_z=4)
    await close(other, 1)
    backup(other, tmp_path / "wednesday", at=START)
    await close(other, 1)
    restore(copies[0], path, at=START)
    await started(path)
    assert restore(tmp_path / "wednesday", path, at=START).asks == (NIM,)
    assert await asks(path) == [True]


async def test_a_copy_made_while_it_asked_asks_no_more_where_it_is_known(
    path: Path, tmp_path: Path, copies: tuple[Path, Path]
) -> None:
    restore(copies[0], path, at=START)
    await started(path)
    backup(path, tmp_path / "asking", at=START)
    async with opened(path) as store:
        await store.decisions.say_last_z((await Till.of(store)).book, 4)
    await close(path, 1)
    assert restore(tmp_path / "asking", path, at=START).asks == ()
    assert await close(path, 1) == [6]


async def test_a_copy_of_a_book_that_this_disk_has_not_counted_asks_for_that_book_alone(
    path: Path, tmp_path: Path
) -> None:
    """Monday's copy has one machine, Tuesday's two: after Monday's, Tuesday's asks for the second."""
    old = tmp_path / "old.sqlite3"
    await close(old, 1)
    backup(old, tmp_path / "monday", at=START)
    await close(old, 2, NIM, OTHER)
    backup(old, tmp_path / "tuesday", at=START)
    restore(tmp_path / "monday", path, at=START, last_z=5)
    assert await close(path, 1) == [6]
    assert restore(tmp_path / "tuesday", path, at=START).asks == (OTHER,)
    assert await asks(path, NIM, OTHER) == [False, True]


async def test_a_book_that_begins_after_a_blind_restore_asks_where_its_machine_was_used(
    path: Path, tmp_path: Path
) -> None:
    """The lost ledger may have had it; a machine that has done nothing yet has no Z."""
    old = tmp_path / "old.sqlite3"
    await close(old, 1)
    backup(old, tmp_path / "monday", at=START)
    restore(tmp_path / "monday", path, at=START, last_z=5)
    async with opened(path) as store:
        for nim, used in ((OTHER, True), ("EL02000098-1", False)):
            till = await Till.of(store, nim)
            till.counters = FiscalCounters(9, 7, 2) if used else till.counters
            await store.ledger.reconcile(till.book, till.state(), unexplained=0, at=till.at)
            assert (store.ledger.peek(book_state, till.book)).needs_last_z is used


async def test_a_question_of_the_high_water_file_is_that_of_the_ledger(path: Path) -> None:
    """Until it is answered, once."""
    await close(path, 1)
    HighWater(path).ask(book_name(NIM, "live", IFU), 7)
    assert await asks(path) == [True]
    async with opened_till(path) as (store, till):
        await store.decisions.say_last_z(till.book, 1)
    assert await asks(path) == [False]


async def test_a_backup_copied_by_hand_onto_a_new_disk_asks(path: Path, copies: tuple[Path, Path]) -> None:
    """`cp` for `mcfd restore`: nothing here knows what was given since."""
    shutil.copy(copies[0], path)
    assert await asks(path) == [True]
    shutil.copy(copies[1], path)
    assert await asks(path) == [True]


async def test_a_restore_by_a_clock_that_is_behind_is_no_copy_by_hand(path: Path, tmp_path: Path) -> None:
    """Its last Z was given with it, and is not asked for again at the start."""
    await close(tmp_path / "old.sqlite3", 2)
    backup(tmp_path / "old.sqlite3", tmp_path / "copy", at=START + DAY)
    restore(tmp_path / "copy", path, at=START, last_z=5)
    assert await asks(path) == [False]


async def test_the_ledger_s_own_file_copied_onto_a_new_disk_asks(path: Path, tmp_path: Path) -> None:
    """`cp` for `mcfd backup`: without the file of what was given; also after a start without the machine. Said once, it is known."""
    await close(tmp_path / "old.sqlite3", 2)
    shutil.copy(tmp_path / "old.sqlite3", path)
    await started(path)
    assert await asks(path) == [True]
    async with opened(path) as store:
        await store.decisions.say_last_z((await meet(store)).book, 4)
    assert await close(path, 1) == [5]


# -- which machine a number is of ---------------------------------------------------------------------------------------------


@pytest.fixture
async def two(tmp_path: Path) -> Path:
    old = tmp_path / "old.sqlite3"
    await close(old, 2, NIM, OTHER)
    backup(old, tmp_path / "copy", at=START)
    return tmp_path / "copy"


async def test_each_machine_has_its_own_last_z(path: Path, two: Path) -> None:
    """X6: said for one, the other still asks; names with and without activation counter."""
    assert restore(two, path, at=START, last_z={"EL02000015": 7}).asks == (OTHER,)
    assert await asks(path, OTHER) == [True]
    assert await close(path, 1) == [8]


@pytest.mark.parametrize("last_z", [7, {"EL02000001": 7}])
async def test_a_last_z_that_is_of_no_one_machine_is_refused(
    path: Path, two: Path, last_z: int | dict[str, int]
) -> None:
    """Nothing is put back."""
    with pytest.raises(InvalidRequest) as refused:
        restore(two, path, at=START, last_z=last_z)
    assert [error.field for error in refused.value.errors] == ["last_z"]
    assert path.name not in os.listdir(path.parent)  # noqa: PTH208  the loop has nothing else to do


@pytest.mark.parametrize("last_z", [2, {NIM: 2}])
async def test_a_last_z_before_that_of_the_backup_is_refused(
    path: Path, copies: tuple[Path, Path], last_z: int | dict[str, int]
) -> None:
    """It is mistyped; taken as the confirmation that there was none since, Z 4 would be given twice. Nothing is put back."""
    with pytest.raises(InvalidRequest, match="the ledger has Z 3"):
        restore(copies[1], path, at=START, last_z=last_z)
    assert path.name not in os.listdir(path.parent)  # noqa: PTH208  the loop has nothing else to do


async def test_a_number_for_the_sandbox_is_nobodys(path: Path, tmp_path: Path) -> None:
    """A plain number is enough where the second book is a sandbox."""
    old = tmp_path / "old.sqlite3"
    await close(old, 2)
    async with opened(old) as store:
        till = await Till.of(store, mode="test")
        await till.close()
    backup(old, tmp_path / "copy", at=START)
    restore(tmp_path / "copy", path, at=START, last_z=7)
    assert query(path, "SELECT mode, z_number FROM book ORDER BY mode") == [("live", 7), ("test", 1)]


# -- a taxpayer that the machine does not tell --------------------------------------------------------------------------------


async def test_a_machine_that_tells_no_taxpayer_leaves_the_book_its_own(path: Path, tmp_path: Path) -> None:
    """X7: between a reset and an activation C1h has no IFU; the book stays its taxpayer's, and so does a Z of that time after a restore."""
    await close(path, 1)
    backup(path, tmp_path / "copy", at=START)
    async with opened(path) as store:
        till = await meet(store, ifu="")
        assert (store.ledger.peek(book_state, till.book)).ifu == IFU
        assert (await till.close()).z_number == 2
    restore(tmp_path / "copy", path, at=START)
    assert await close(path, 1) == [3]


async def test_a_z_before_the_taxpayer_is_known_is_given_once(path: Path, tmp_path: Path) -> None:
    """A new machine that is not activated yet: what was closed under no name counts for the taxpayer that comes, also after a restore."""
    async with opened(path) as store:
        await meet(store, ifu="")
    backup(path, tmp_path / "copy", at=START)
    async with opened(path) as store:
        assert (await (await meet(store, ifu="")).close()).z_number == 1
        assert (await (await meet(store)).close()).z_number == 2
    restore(tmp_path / "copy", path, at=START)
    assert await close(path, 1) == [3]
    restore(tmp_path / "copy", path, at=START)
    async with opened(path) as store:
        assert (await (await meet(store, ifu="")).close()).z_number == 4


async def test_a_taxpayer_that_0_1_0_has_emptied_is_known_from_the_last_certification(store: Store) -> None:
    till = await meet(store)
    await till.sell()
    await store.ledger.write(lambda connection: connection.execute("UPDATE book SET ifu = ''"))
    assert (store.ledger.peek(book_state, till.book)).ifu == IFU
