"""Every history of a few days with a clock that was wrong once: which rows (keys, events) housekeeping lets go (X8)."""

from collections.abc import Iterator
from itertools import product
from typing import NamedTuple

from daemon.core.clock import DAY
from daemon.store.maintenance.housekeeping import horizon

COPIES = 2
"""Days in the model, where the product has 30 and 7."""
LENGTH = 7
JUMPS = (-1000, -1, 1, 2, 3, 40, 1000)


class Row(NamedTuple):
    """`at` by the book (ms), `day` the true one."""

    at: int
    day: int


class Book:
    def __init__(self) -> None:
        self.head = 0
        self.rows: list[Row] = []
        self.gone: list[tuple[Row, int]] = []
        """With how many true days afterwards had rows."""

    def write(self, day: int, jump: int) -> None:
        """The book's time never goes back."""
        self.head = max(self.head, (1000 + day + jump) * DAY)
        self.rows.append(Row(self.head, day))

    def prune(self, day: int, jump: int) -> None:
        """`housekeeping.prune`, with what its SQL finds."""
        days = sorted({row.at // DAY for row in self.rows}, reverse=True)
        if len(days) <= COPIES:
            return
        first = horizon(min((1000 + day + jump) * DAY, self.head), days[COPIES], COPIES)
        for row in [row for row in self.rows if row.at < first]:
            self.rows.remove(row)
            later = {other.day for other in (*self.rows, *(gone for gone, _ in self.gone)) if other.day > row.day}
            self.gone.append((row, len(later)))


def histories() -> Iterator[tuple[tuple[bool, ...], int, int, bool]]:
    """Which days have rows; on which the clock jumps, how far, and whether it stays wrong."""
    for sold, at, jump, stays in product(product((False, True), repeat=LENGTH), range(LENGTH), JUMPS, (False, True)):
        if sold[at]:
            yield sold, at, jump, stays


def played(sold: tuple[bool, ...], at: int, jump: int, *, stays: bool) -> Book:
    book = Book()
    for day in range(LENGTH):
        wrong = jump if day == at or (stays and day > at) else 0
        for clock in dict.fromkeys((wrong, wrong if stays else 0)):  # ahead for a moment, and right again
            if sold[day]:
                book.write(day, clock)
            book.prune(day, clock)
    return book


def test_a_clock_that_was_wrong_once_lets_nothing_go_too_early() -> None:
    """A row goes when later rows are on more days than it is kept, of which a jump may have added one."""
    for sold, at, jump, stays in histories():
        early = [row for row, later in played(sold, at, jump, stays=stays).gone if later < COPIES]
        assert not early, (sold, at, jump, stays, early)


def test_with_a_right_clock_old_rows_go() -> None:
    """After as many days with rows as they are kept, and one."""
    for sold in product((False, True), repeat=LENGTH):
        days = [day for day in range(LENGTH) if sold[day]]
        left = {row.day for row in played(sold, 0, 0, stays=False).rows}
        assert left == set(days[-COPIES - 1 :]), sold
