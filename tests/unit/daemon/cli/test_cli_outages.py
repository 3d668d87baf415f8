"""`mcfd outages`: the register as it is read and completed at a terminal."""

from pathlib import Path

import pytest
from support.cli.command import NIM, Command, audited
from support.ledgers.ledger import MINUTE, START, Till, opened

SPARE = "EL02000099-1"
NOTE = ("--notified", "administration", "--reference", "DGI-118")


@pytest.fixture
async def mcfd(tmp_path: Path) -> Command:
    """Two outages of one machine, of which the second lasts, and one of another that lay between them."""
    command = Command(tmp_path)
    async with opened(command.ledger) as store:
        till, other = await Till.of(store), await Till.of(store, SPARE)
        for machine, at, until in ((till, 10, 15), (other, 20, 30), (till, 40, 0)):
            begun = await store.ledger.begin_outage(
                machine.book, "line_lost", at=START + at * MINUTE, lasted=0, refused=True, incident=""
            )
            assert begun
            if until:
                await store.ledger.end_outage(machine.book, at=START + until * MINUTE, until=START + until * MINUTE)
    return command


def test_the_register_is_listed_newest_first(mcfd: Command) -> None:
    """Of all machines, or of one; as the API has it for scripts, and in a range of days."""
    listed = mcfd.json("outages")
    assert [(each["nim"], each["id"]) for each in listed] == [(NIM, 2), (SPARE, 1), (NIM, 1)]
    assert listed[0]["to"] is None
    assert listed[2] == {
        "id": 1,
        "nim": NIM,
        "from": "2025-12-06T05:56:40.000Z",
        "to": "2025-12-06T06:01:40.000Z",
        "reason": "line_lost",
        "refused": True,
        "incident": None,
        "sales": {"count": 0, "total": 0},
        "notified": [],
    }
    assert [each["id"] for each in mcfd.json("outages", "--nim", "EL02000099")] == [1]
    assert [each["id"] for each in mcfd.json("outages", "--nim", NIM, "--limit", "1")] == [2]
    assert mcfd.json("outages", "--from", "2025-01-01", "--to", "2025-01-31") == []
    head, lasting, *_, first = mcfd.ok("outages").splitlines()
    assert head.split()[:3] == ["No.", "NIM", "SINCE"]
    assert "lasts still" in lasting
    assert all(part in first for part in (NIM, "2025-12-06 05:56:40", "2025-12-06 06:01:40", "0 h 05 min", "no one"))


def test_what_cannot_be_noted_is_one_line(mcfd: Command) -> None:
    assert mcfd.refused(1, "outages", "3", "--nim", NIM, *NOTE) == "there is no outage 3"
    assert mcfd.refused(1, "outages", "9", "--nim", NIM) == "there is no outage 9"
    assert "reference" in mcfd.refused(2, "outages", "2", "--nim", NIM, "--notified", "distributor")
    assert "future" in mcfd.refused(2, "outages", "2", "--nim", NIM, *NOTE, "--at", "2199-01-01T00:00:00Z")
    for wrong in (NOTE, ("--reference", "x"), ("1", "--from", "2025-01-01"), ("0",), ("1", "--notified", "mayor")):
        assert mcfd.run("outages", *wrong).returncode == 2, wrong
    assert audited(mcfd, "outage.notified") == []
