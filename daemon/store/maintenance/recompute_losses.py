"""Records that a disk has lost, in the recomputation of a book: those that an entry of the chain names count what it says,
and the chain goes on after them; the others are found, and the next totals show what they counted."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import msgspec

from common.language import Text
from daemon.core.ledger.book import Tally
from daemon.core.ledger.entries import Placed, RecordsLost
from daemon.core.ledger.tally import accumulate, subtract
from daemon.store.tables.book.books import BookStart


class LossCheck:
    """`found`: what no entry names. `is_after_loss`: what is read now follows lost records, and no hash confirms it.
    `is_unsure`: the totals may lack what lost records counted; `is_closed_unsure`: so may those of the last Z.
    `is_start_lost`: the first sale of the period may be lost."""

    def __init__(self, entries: Iterable[Placed], note: Callable[[str], None]) -> None:
        self.found: list[RecordsLost] = []
        self.named = [entry for placed in entries if isinstance(entry := placed.entry, RecordsLost)]
        self.is_after_loss = self.is_unsure = self.is_closed_unsure = self.is_start_lost = False
        self._note = note
        self._unreadable = 0
        self._uncounted: RecordsLost | None = None

    def take_unreadable(self, seq: int) -> bool:
        """Whether an entry names that record, whose row cannot be read: for what follows it is missing."""
        self._unreadable += 1
        return any(loss.first_seq <= seq <= loss.last_seq for loss in self.named)

    def pass_missing(self, now: BookStart, last: int, next_hash: str, totals: Tally | None) -> None:
        """Goes on after records up to `last` that are missing. `totals`: of one of them, if they are known."""
        self.is_after_loss = False
        place = (now.seq + 1, last, next_hash)
        if last <= now.seq:
            return
        self.is_start_lost = self.is_start_lost or not now.fvc_start
        named = next((loss for loss in self.named if (loss.first_seq, loss.last_seq, loss.next_hash) == place), None)
        if named is not None:
            self.is_after_loss, self.is_unsure = True, named.tally is None
            accumulate(now.running, named.tally or {})
        else:
            if self._unreadable < last - now.seq:
                self._note(Text("records {first} to {last} are missing", first=now.seq + 1, last=last))
            self.end(None)
            self._uncounted = RecordsLost(*place, tally={})
            if totals is not None:
                self.is_sum(now, totals)
        now.seq, self._unreadable = last, 0

    def is_sum(self, now: BookStart, running: Tally) -> bool:
        """Whether these totals are the sum of the records; the difference is what missing ones counted."""
        missing = subtract(running, now.running)
        if self.end(missing):
            accumulate(now.running, missing)
        return not missing

    def pass_closure(self) -> None:
        self.is_start_lost, self.is_closed_unsure = False, self.is_unsure

    def end(self, tally: Tally | None) -> bool:
        """Ends the search for what the last missing records counted; whether there were any."""
        loss, self._uncounted = self._uncounted, None
        if loss is not None:
            self.found.append(msgspec.structs.replace(loss, tally=tally))
        return loss is not None
