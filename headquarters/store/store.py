"""All storage of headquarters, by subject."""

from headquarters.store.book.books import settle_all_replaced
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
from headquarters.store.stream_ranges import StreamRanges


class HqStore:
    """Methods block and are thread-safe; they raise StoreError if the database is unusable."""

    def __init__(self, url: str) -> None:
        self.database = Database(url)
        self.closures = Closures(self.database)
        self.evidence = EvidenceStore(self.database)
        self.findings = FindingStore(self.database)
        self.figures = Figures(self.database)
        settled = Settled()
        self.joining = Joining(self.database, settled)
        self.people = HqPeople(self.database, settled)
        self.presences = Presences(self.database)
        self.register = Register(self.database, settled)
        self.stream_ranges = StreamRanges(self.database)
        self.watching = Watching(self.database)

    def open(self) -> None:
        """Creates or migrates the tables."""
        self.database.migrate(settle_all_replaced)

    def close(self) -> None:
        self.database.close()
