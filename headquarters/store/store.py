"""All storage of headquarters, by subject."""

from __future__ import annotations

from headquarters.store.book.closures import Closures
from headquarters.store.book.presences import Presences
from headquarters.store.database import Database
from headquarters.store.evidence import EvidenceStore
from headquarters.store.figures import Figures
from headquarters.store.findings import FindingStore, Watching
from headquarters.store.joining import Joining
from headquarters.store.people import HqPeople
from headquarters.store.register import Register
from headquarters.store.revision import Settled
from headquarters.store.taken import TakenMessages


class HqStore:
    """Methods block and are thread-safe; they raise StoreError if the database is unusable."""

    def __init__(self, url: str, beside: HqStore | None = None) -> None:
        """`beside` is a store whose connections this one must not use up; both share the state of the register."""
        self.database = Database(url)
        self.closures = Closures(self.database)
        self.evidence = EvidenceStore(self.database)
        self.findings = FindingStore(self.database)
        self.figures = Figures(self.database)
        self.settled: Settled = beside.settled if beside is not None else Settled()
        self.joining = Joining(self.database, self.settled)
        self.people = HqPeople(self.database, self.settled)
        self.presences = Presences(self.database)
        self.register = Register(self.database, self.settled)
        self.taken = TakenMessages(self.database)
        self.watching = Watching(self.database)

    def open(self) -> None:
        """Creates or migrates the tables."""
        self.database.migrate()

    def close(self) -> None:
        self.database.close()
