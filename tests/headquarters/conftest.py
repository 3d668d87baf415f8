import pytest
from support.hq.store import box, cluster, copied_database, copied_file, database_url, new_store, new_url, store

from headquarters.intake.threads import Threads

__all__ = ["box", "cluster", "copied_database", "copied_file", "database_url", "new_store", "new_url", "store"]


@pytest.fixture
def threads():
    threads = Threads(2)
    yield threads
    threads.close()
