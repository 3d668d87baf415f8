"""Which Zs should have printed themselves and did not."""

from support.ledgers.ledger import Till

from daemon.store.store import Store
from daemon.store.tables import z_papers


async def test_a_z_without_an_end_of_its_printing_is_unprinted_from_the_next_start(store: Store, till: Till) -> None:
    """Those before the first start with `[printer] z`, and those made without it, are not; paper on request ends it, once it is one of them."""
    ledger, book = store.ledger, till.book

    def unprinted() -> tuple[int, ...]:
        return ledger.peek(z_papers.unprinted, book)

    await till.close()
    await ledger.write(z_papers.note, book, 1, is_printed=False)
    assert unprinted() == ()
    assert await ledger.write(z_papers.resume, book) == ()
    await till.close()
    await ledger.write(z_papers.note, book, 2, is_printed=False)
    await till.close()
    await ledger.write(z_papers.note, book, 3, is_printed=True)
    for _ in range(2):
        await till.close()
    assert unprinted() == (2,)
    assert await ledger.write(z_papers.resume, book) == (4, 5)
    assert await ledger.write(z_papers.resume, book) == ()
    await ledger.write(z_papers.note, book, 4, is_printed=True)
    assert unprinted() == (2, 5)
    await ledger.write(z_papers.forget, book)
    await till.close()
    assert unprinted() == ()
    assert await ledger.write(z_papers.resume, book) == ()
