"""A Z number, once given, is never given again for that machine, and a revoked key stays revoked, whatever is restored (decision 30). Whether the last Z of
a book has to be asked for is a fact of that book: no restore, start or empty ledger in between answers it."""

import shutil
from contextlib import closing
from itertools import product
from pathlib import Path

import pytest
from support.ledgers.ledger import IFU, NIM, START, Till, opened, opened_till, query, tamper

from daemon.core.clock import DAY
from daemon.core.errors import InvalidRequest, ZNumberUnknown
from daemon.core.ledger.entries import Gap
from daemon.core.machine.state import FiscalCounters
from daemon.store.maintenance import numbers
from daemon.store.maintenance.backup import backup, restore
from daemon.store.maintenance.numbers import apply_last_z
from daemon.store.maintenance.verify import verify
from daemon.store.sqlite.file import open_file
from daemon.store.sqlite.high_water import HighWater, book_name, mark_path
from daemon.store.store import Store
from daemon.store.tables.book import entries, uniqueness
from daemon.store.tables.book.books import book_state
from daemon.store.tables.keys import create_key, revoke_key
from daemon.store.tables.meta import write_meta
from daemon.store.tables.people import create_person, find_session, open_session

OTHER = "EL02000099-1"
BOOK = book_name(NIM, "live", IFU)


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


class Disk:
    """Plays a history: each step is a method and what it is given; `close 2 = 5` are two sales, each with a Z, of which the last has number 5."""

    def __init__(self, path: Path) -> None:
        self.path, self.copies = path, path.parent.parent / "copies"
        self.copies.mkdir()

    async def play(self, history: str) -> None:
        for step in filter(None, history.split("; ")):
            what, *words = step.split()
            await getattr(self, what)(*words)

    async def close(self, *words: str) -> None:
        """`nobody`: the machine tells no taxpayer."""
        for _ in range(int(words[0]) if words and words[0].isdigit() else 1):
            async with opened(self.path) as store:
                till = await meet(store, ifu="" if "nobody" in words else IFU)
                await till.sell()
                number = (await till.close()).z_number
        assert "=" not in words or number == int(words[-1])

    async def meet(self, *words: str) -> None:
        async with opened(self.path) as store:
            await meet(store, ifu="" if words else IFU)

    async def start(self) -> None:
        async with opened(self.path):
            pass

    async def create_key(self) -> None:
        async with opened(self.path, opening="command") as store:
            await store.ledger.write(create_key, NIM, "live", "till", at=START)

    async def backup(self, name: str, *words: str) -> None:
        backup(self.path, self.copies / name, at=START + DAY * ("tomorrow" in words))

    async def save(self, name: str) -> None:
        """The ledger's own file by hand, `cp` for `mcfd backup`."""
        shutil.copy(self.path, self.copies / name)

    async def copy(self, name: str) -> None:
        """By hand, `cp` for `mcfd restore`."""
        shutil.copy(self.copies / name, self.path)

    async def restore(self, name: str, *words: str) -> None:
        """With the last Z that a person says; `asks` or `knows` is what comes of it."""
        last_z = next((int(word) for word in words if word.isdigit()), None)
        asks = restore(self.copies / name, self.path, at=START, last_z=last_z).asks
        assert not {"asks", "knows"} & set(words) or asks == ((NIM,) if "asks" in words else ())

    async def lose(self, what: str) -> None:
        """The whole disk, the file of what was given (`marks`), or all but that."""
        files = [mark_path(self.path)] if what == "marks" else list(self.path.parent.iterdir())
        for file in files:
            if what != "ledger" or file != mark_path(self.path):
                file.unlink(missing_ok=True)

    async def asks(self) -> None:
        assert await asks(self.path) == [True]

    async def say(self, number: str) -> None:
        async with opened(self.path) as store:
            await store.decisions.set_last_z((await meet(store)).book, int(number))

    async def hear(self, number: str) -> None:
        """From headquarters."""
        async with opened(self.path) as store:
            assert await store.decisions.write(apply_last_z, (await meet(store)).book, int(number))

    async def reserve(self, number: str) -> None:
        """As a crash before the commit of a Z leaves it."""
        HighWater(self.path).reserve(BOOK, int(number))

    async def ask(self, after: str) -> None:
        """A question of the file beside it, which says this of its last Z."""
        HighWater(self.path).ask(BOOK, int(after))

    async def gap(self, first: str, last: str) -> None:
        async with opened_till(self.path) as (store, till):
            found = await store.ledger.read(lambda connection: list(entries.entries(connection, till.book)))
        assert [placed.entry for placed in found] == [Gap(int(first), int(last), "ledger.high-water")]


LOST = "close 2; backup monday; close; backup tuesday; close; lose disk; "
"""A disk with four Z, of which Monday's copy knows two and Tuesday's three."""


def restored(order: tuple[str, ...], is_started: bool, lost: str) -> str:
    steps = []
    for at, name in enumerate(order):
        steps += [f"restore {name}"] + ["asks"] * is_started
        if lost == "marks" or (lost == "ledger" and at < len(order) - 1):
            steps.append(f"lose {lost}")
    return LOST + "; ".join([*steps, "asks"])


ORDERS = (
    ("monday", "tuesday"),
    ("monday", "monday"),
    ("tuesday", "monday"),
    ("tuesday", "tuesday", "monday"),
    ("monday", "tuesday", "monday"),
)
# fmt: off
HISTORIES = {
    # What was given is not given again.
    "the replaced ledger is asked": "close 2; backup copy; close 3; restore copy knows; close = 6; gap 3 5",
    "the replaced ledger is asked where the file beside it is gone": "close 2; backup copy; close 3; lose marks; restore copy knows; close = 6; gap 3 5",
    "an older file put in its place by hand": "close; backup copy; close 2; copy copy; gap 2 3; close = 4",
    "a number that was only reserved is given by the retry": "close 2; reserve 3; close = 3",
    "whether an answer had the number that a newer ledger had reserved is not known": "close; backup copy; close; reserve 3; copy copy; close = 4",
    "a restore knows whether a reserved number was given": "close; backup copy; close; reserve 3; restore copy; close = 3",
    "what is said with the restore": "close 2; backup copy; close; restore copy 7; close = 8",
    "what is remembered here": "close 2; backup copy; close; restore copy knows; close = 4",
    "X7 a machine that tells no taxpayer leaves the book its own": "close; backup copy; close nobody = 2; restore copy; close = 3",
    "a Z before the taxpayer is known":
        "meet nobody; backup copy; close nobody = 1; close = 2; restore copy; close = 3; restore copy; close nobody = 4",
    # Whether it has to be asked for.
    "a question of the file beside it is that of the ledger, until it is answered": "close; ask 7; asks; say 1; close = 2",
    "a restore by a clock that is behind is no copy by hand": "close 2; backup copy tomorrow; lose disk; restore copy 5; close = 6",
    **{
        f"the last Z of a restore answers what was asked{after} for good": f"close; backup copy; lose disk; {before}restore copy 5 knows; start; close = 6; ask 7; asks"
        for after, before in ((" before", "restore copy asks; asks; "), ("", ""))
    },
    **{
        f"X5 an empty ledger on a new disk, by {before}": f"{LOST}{before}; restore monday asks; asks; asks; say 4; close = 5"
        for before in ("start", "meet", "create_key")
    },
    **{
        f"Y1 a question survives {order}, started {is_started}, lost {lost}": restored(order, is_started, lost)
        for order, is_started, lost in product(ORDERS, (False, True), ("nothing", "marks", "ledger"))
    },
    **{
        f"an answer survives, {how}, {again}": f"{LOST}restore monday{how}; close = 5; restore {again} knows; close = 6; restore {again} knows; close = 7"
        for how, again in product((" 4", "; say 4", "; hear 4"), ("monday", "tuesday"))
    },
    "an answer on another disk is none here":
        f"{LOST}restore monday 4; close; backup wednesday; close; lose disk; restore monday; start; restore wednesday asks; asks",
    "a copy that was made while it asked": f"{LOST}restore monday; start; backup asking; say 4; close; restore asking knows; close = 6",
    "a backup of the newest Z copied by hand": "close 2; backup copy; copy copy; close = 3",
    "what is said with the restore of a copy that was made while it asked":
        f"{LOST}restore monday; start; backup asking; lose disk; restore asking 4 knows; close = 5",
    "a backup copied by hand onto a new disk": f"{LOST}copy monday; asks; copy tuesday; asks",
    "the ledger's own file copied onto a new disk": "close 2; save file; lose disk; copy file; start; asks; say 4; close = 5",
}
# fmt: on


@pytest.mark.parametrize("history", HISTORIES.values(), ids=HISTORIES)
async def test_a_number_is_given_once_and_asked_for_where_it_is_not_known(tmp_path: Path, history: str) -> None:
    """And `verify` finds nothing."""
    (tmp_path / "disk").mkdir()
    disk = Disk(tmp_path / "disk" / "ledger.sqlite3")
    await disk.play(history)
    assert verify(disk.path).problems == ()


async def test_a_key_that_was_revoked_since_stays_revoked(path: Path, tmp_path: Path) -> None:
    """Its backup knows it as a working one."""
    async with opened(path) as store:
        key = await store.ledger.write(create_key, NIM, "live", "till", at=1)
    backup(path, tmp_path / "copy", at=START)
    async with opened(path) as store:
        await store.ledger.write(revoke_key, 1, at=2)
    restore(tmp_path / "copy", path, at=START)
    async with opened(path) as store:
        assert store.key_ring.find(key) is None


async def test_a_session_ends_where_an_older_ledger_is_copied_into_place(path: Path, tmp_path: Path) -> None:
    """It may have been ended since."""
    async with opened(path) as store:
        await store.ledger.write(create_person, "awa", "manager", "scrypt$", at=1)
        await store.ledger.write(open_session, 1, "awa", b"digest", at=1)
    backup(path, tmp_path / "copy", at=START)
    shutil.copy(tmp_path / "copy", path)
    async with opened(path) as store:
        assert store.ledger.peek(find_session, b"digest") is None


async def test_the_number_is_durable_before_its_z(till: Till, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that cannot be written: no Z, and no number used."""
    await till.sell()
    with monkeypatch.context() as patch:
        patch.setattr("os.fsync", _full)
        with pytest.raises(Exception, match="high-water"):
            await till.close()
    assert (await till.close()).z_number == 1


async def test_a_restore_asks_the_file_for_what_the_replaced_ledger_does_not_know(path: Path, tmp_path: Path) -> None:
    """An older one that was copied there by hand: a number that was reserved after it may stand in an answer, and other books have theirs."""
    other = book_name(OTHER, "live", IFU)
    await close(path, 1)
    backup(path, tmp_path / "copy", at=START)
    await close(path, 1)
    HighWater(path).reserve(BOOK, 3)
    HighWater(path).count_number(other, 4)
    shutil.copy(tmp_path / "copy", path)
    restore(tmp_path / "copy", path, at=START)
    assert await close(path, 1) == [4]
    assert HighWater(path).highest(other) == 4


def _full(_: int) -> None:
    raise OSError(28, "No space left on device")


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


async def test_a_taxpayer_that_0_1_0_has_emptied_is_known_from_the_last_certification(store: Store) -> None:
    till = await meet(store)
    await till.sell()
    await store.ledger.write(lambda connection: connection.execute("UPDATE book SET ifu = ''"))
    assert (store.ledger.peek(book_state, till.book)).ifu == IFU


async def test_a_start_that_fails_in_the_middle_of_a_gap_leaves_none(path: Path, tmp_path: Path) -> None:
    """The next start finds the older copy as it was, and skips the numbers once."""
    await close(path, 1)
    backup(path, tmp_path / "copy", at=START)
    await close(path, 2)
    restore(tmp_path / "copy", path, at=START)
    tamper(path, "CREATE TRIGGER full BEFORE UPDATE OF z_number ON book BEGIN SELECT RAISE(ABORT, 'full'); END")
    with pytest.raises(Exception, match="full"):
        await close(path, 1)
    tamper(path, "DROP TRIGGER full")
    assert await close(path, 1) == [4]
    async with opened(path) as store:
        found = await store.ledger.read(entries.entries, (await Till.of(store)).book)
    assert [placed.entry for placed in found] == [Gap(2, 3, "ledger.high-water")]


@pytest.mark.parametrize(("most", "taken"), [(1, {"A": 5}), (2, {"A": 5, "B": 7})])
async def test_places_are_taken_over_of_so_many_series(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most: int, taken: dict[str, int]
) -> None:
    """A till may send numbers that are no series; of one that the copy has, the higher place counts always."""
    monkeypatch.setattr(numbers, "MAX_SERIES", most)
    path, copy = tmp_path / "ledger", tmp_path / "copy"
    for ledger, places in ((path, '{"A":5,"B":7}'), (copy, '{"A":3}')):
        async with opened(ledger) as store:
            await store.ledger.write(write_meta, uniqueness.PLACES, places)
    with closing(open_file(copy, "rw")) as connection:
        numbers.take_over_places(connection, path)
        assert uniqueness.read_places(connection) == taken


@pytest.mark.parametrize(
    ("last_z", "why"),
    [
        (7, r"last_z"),
        ({"EL02000001": 7}, r"last_z"),
        ({NIM: 1}, "the ledger has Z 2"),
    ],
    ids=[
        "of two machines",
        "of a machine that the copy has not",
        "before that of the copy, so that Z 2 would be given twice",
    ],
)
def test_a_last_z_that_cannot_be_is_refused(path: Path, two: Path, last_z: int | dict[str, int], why: str) -> None:
    """Nothing is put back."""
    with pytest.raises(InvalidRequest, match=why):
        restore(two, path, at=START, last_z=last_z)
    assert not path.exists()
