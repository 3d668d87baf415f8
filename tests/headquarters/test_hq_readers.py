"""People who read, and programs that ask, take nothing from the boxes whose closures come in. A whole headquarters, on PostgreSQL."""

import time
from concurrent.futures import ThreadPoolExecutor

import httpx
from support.hq.paper_box import PaperBox
from support.hq.running import RunningHq
from support.hq.store import NOW
from support.shop import PLAIN

from headquarters.store.store import HqStore

TABS = 20


def test_closures_come_in_while_pages_wait(cluster, tmp_path):
    """Twenty tabs of Totals, of shops and of the list of boxes wait for the database: a box's closure is taken, and its presence answered, all the same."""
    url = cluster.database()
    hq, store, box = RunningHq(tmp_path, url), HqStore(url), PaperBox()
    store.open()
    store.register.add(box.nim, box.key.public, now=NOW)
    store.people.create("Awa", "no password", "accountant", 1)
    hq.start()
    try:
        box.close()
        assert hq.post("/closures", box.sent(box.closures[0])).status_code == 200
        cookies = {"hq_session": store.people.begin("Awa", time.time_ns() // 1_000_000)}
        paths = ("/ui/totals", "/ui/boxes", "/ui/exports/closures.csv", "/ui/")
        with (
            ThreadPoolExecutor(TABS) as tabs,
            httpx.Client(base_url=hq.base, cookies=cookies, timeout=60, trust_env=False, verify=PLAIN) as person,
        ):
            with store.database.write() as connection:
                connection.exec_driver_sql("LOCK TABLE box IN ACCESS EXCLUSIVE MODE")
                opened = [tabs.submit(person.get, paths[number % len(paths)]) for number in range(TABS)]
                waiting = "SELECT count(*) FROM pg_locks WHERE NOT granted AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
                while connection.exec_driver_sql(waiting).scalar() < 2:
                    pass
                closure = box.close()
                assert hq.post("/closures", box.sent(closure)).status_code == 200
                assert not any(tab.done() for tab in opened)
            assert {tab.result().status_code for tab in opened} == {200}
    finally:
        assert hq.stop() == 0
        store.close()
        cluster.drop(url)
