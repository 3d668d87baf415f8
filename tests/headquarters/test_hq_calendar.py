"""The months that a box closes reach headquarters among its closures: made by the box's own ledger, signed, kept once, shown at the shop."""

from datetime import UTC, datetime
from pathlib import Path
from uuid import UUID

import msgspec
import pytest
from support.hq.in_process import pages
from support.hq.store import NOW, evidence_of, open_findings
from support.ledgers.ledger import opened_till, sent_by_a_box

from common.wire.calendar_closure import read_calendar
from common.wire.errors import BadEvent
from common.wire.keys import PrivateKey
from common.wire.signing import sign
from daemon.core.clock import millis
from daemon.upstream.options import compose
from headquarters.core.reception import Message, MessageRefused, ReceivedCalendar, receive
from headquarters.store.book.closures import StoreOutcome


def message(box, body: bytes, report_id: str) -> Message:
    return Message(via="https", headers=sign([box.key], report_id, NOW // 1000, body), body=body)


async def test_months_and_years_go_upstream_and_are_shown(store, box, tmp_path: Path) -> None:
    """In their order, each once; the same message again is known, another one with its id is not taken. A second one of a month is a finding."""
    waiting = await sent_by_a_box(tmp_path / "ledger")
    assert [(entry.kind, entry.z_number) for entry in waiting] == [("Z", 1), ("month", 1), ("year", 1), ("Z", 2)]
    ring = store.register.ring()
    calendar = []
    for entry in waiting[1:3]:
        found = receive(message(box, compose(entry), entry.report_id), ring, now=NOW / 1000, zone=UTC)
        assert isinstance(found, ReceivedCalendar)
        calendar.append(found)
    assert [(one.data.period, one.data.total_ttc) for one in calendar] == [("2026-12", 5000), ("2026", 5000)]
    assert all(one.data.ledger_id for one in calendar)
    assert store.closures.store(calendar, now=NOW) == [StoreOutcome.STORED] * 2
    assert store.closures.store(calendar, now=NOW) == [StoreOutcome.DUPLICATE] * 2
    other = msgspec.structs.replace(calendar[0], data=msgspec.structs.replace(calendar[0].data, body="{}"))
    assert store.closures.store([other], now=NOW) == [StoreOutcome.FORK]
    [sample] = store.evidence.samples()
    assert (sample.reason, sample.detail) == ("fork", f"month 2026-12, id {other.data.report_id}")
    again = msgspec.structs.replace(other, data=msgspec.structs.replace(other.data, report_id=str(UUID(int=1))))
    assert store.closures.store([again], now=NOW) == [StoreOutcome.STORED]
    expected = [("fork", "calendar", "2026-12", one.data.report_id) for one in (again, other)]
    assert open_findings(store) == sorted(expected)
    async with pages(store, role="reader") as client:
        screen = await client.get(f"/ui/shops/{box.nim}?month=2026-12")
        assert screen.status_code == 200
        assert screen.text.count('data-testid="calendar-row"') == 3
        assert "2026-12 a été clôturé une deuxième fois" in screen.text


async def test_a_month_is_taken_from_its_box_alone(store, box, tmp_path: Path) -> None:
    entry = (await sent_by_a_box(tmp_path / "ledger"))[1]
    body = compose(entry)
    changed = body.replace(b'"total_ttc":5000', b'"total_ttc":6000')
    signed = message(box, body, entry.report_id)
    with pytest.raises(MessageRefused, match="no signature"):
        receive(msgspec.structs.replace(signed, body=changed), store.register.ring(), now=NOW / 1000, zone=UTC)
    for wrong in (b'"period":"2026-13"', b'"period":"2026"'):
        with pytest.raises(BadEvent, match="period"):
            read_calendar(body.replace(b'"period":"2026-12"', wrong))


async def test_what_headquarters_has_lost_comes_with_the_z_behind_it(tmp_path: Path) -> None:
    """A box is asked for Zs alone: it sends the months and years that were closed between them, too."""
    async with opened_till(tmp_path / "ledger") as (store, till):
        for day in (datetime(2026, 12, 31, 18, tzinfo=UTC), datetime(2027, 1, 1, 18, tzinfo=UTC)):
            till.at = millis(day)
            await till.close()
        for first, last, kinds in ((1, 1, ["Z"]), (2, 2, ["month", "year", "Z"])):
            for entry in await store.outbox.waiting(till.book.nim, "live", 10):
                await store.outbox.mark_sent(entry.id, at=till.at)
            assert await store.outbox.resend(till.book.nim, "live", first, last) == len(kinds)
            assert [entry.kind for entry in await store.outbox.waiting(till.book.nim, "live", 10)] == kinds
        for entry in await store.outbox.waiting(till.book.nim, "live", 10):
            await store.outbox.mark_sent(entry.id, at=till.at)
        assert await store.outbox.replay(nim=till.book.nim, from_z=1, at=till.at) == 4


async def test_a_month_that_a_thief_has_made_up_is_withdrawn(store, box, tmp_path: Path) -> None:
    """With the key that was stolen: it is evidence, and the box's own, which comes again, is taken."""
    entry = (await sent_by_a_box(tmp_path / "ledger"))[1]
    month = receive(message(box, compose(entry), entry.report_id), store.register.ring(), now=NOW / 1000, zone=UTC)
    store.closures.store([month], now=NOW)
    assert store.register.revoke("EL02000015", box.key.id, NOW)
    assert store.register.withdraw("EL02000015", box.key.id, NOW + 1, NOW + 2) == 0
    assert store.register.withdraw("EL02000015", box.key.id, NOW, NOW + 2) == 1
    assert store.figures.calendar("EL02000015", "2026") == []
    [sample] = store.evidence.samples()
    assert (sample.reason, evidence_of(store, sample.id)) == ("withdrawn", month.message.body)
    assert store.closures.store([month], now=NOW + 3) == [StoreOutcome.STORED]


@pytest.mark.parametrize("is_thief_first", [True, False])
async def test_the_finding_of_a_month_goes_with_the_thief_s(store, box, tmp_path: Path, is_thief_first) -> None:
    """Two closures of one month are a finding, solved once the thief's is withdrawn; two of the shop itself stay one."""
    entry = (await sent_by_a_box(tmp_path / "ledger"))[1]
    true = receive(message(box, compose(entry), entry.report_id), store.register.ring(), now=NOW / 1000, zone=UTC)

    def another(id_: int, key_id: str, **changes: object) -> ReceivedCalendar:
        data = msgspec.structs.replace(true.data, report_id=str(UUID(int=id_)), body=f"{id_}", **changes)
        return msgspec.structs.replace(true, data=data, key_id=key_id)

    old = box.key.id
    store.register.add(box.nim, PrivateKey(b"n" * 32).public, now=NOW)
    both = [another(1, old), msgspec.structs.replace(true, key_id="new")]
    twice = [another(id_, "new", number=9, period="2026-11") for id_ in (2, 3)]
    for one in [*(both if is_thief_first else reversed(both)), *twice]:
        assert store.closures.store([one], now=NOW) == [StoreOutcome.STORED]
    assert [facts[1:3] for facts in open_findings(store)] == [("calendar", "2026-11"), ("calendar", "2026-12")]
    assert store.register.revoke("EL02000015", old, NOW)
    assert store.register.withdraw("EL02000015", old, NOW, NOW + 2) == 1
    assert [facts[1:3] for facts in open_findings(store)] == [("calendar", "2026-11")]
    assert {one.note for one in store.findings.listed(is_open=False)} == {f"withdrawn with key {old}"}
