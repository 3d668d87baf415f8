"""The register of outages as clients get it, and a note of who was notified."""

import msgspec
import pytest

from daemon.core.clock import HOUR
from daemon.core.errors import InvalidRequest
from daemon.core.ledger.outage import Notice, Outage
from daemon.core.report.outages import outage_data, outage_list, read_notice

NIM, NOW = "EL02000015-1", 1_767_607_200_000
FILED: dict[str, object] = {"who": "administration", "reference": " A-7 "}


def test_an_outage_is_answered_with_all_that_the_register_has() -> None:
    """What is not known is null: its end while it lasts, and a recording of the line."""
    lasting = Outage(2, NIM, "line_lost", NOW - HOUR, 0, refused=False)
    notices = (Notice("distributor", "A-7", NOW),)
    over = Outage(1, NIM, "disk", NOW - HOUR, NOW, True, "20260105T100000Z", notices, sales=2, sales_total=590)
    answer = msgspec.to_builtins(outage_list(NIM, NOW - HOUR, NOW, [over, lasting]))
    assert answer.pop("outages") == (msgspec.to_builtins(outage_data(over)), msgspec.to_builtins(outage_data(lasting)))
    assert answer == {"nim": NIM, "from": "2026-01-05T09:00:00.000Z", "to": "2026-01-05T10:00:00.000Z", "count": 2}
    usual = {"nim": NIM, "from": "2026-01-05T09:00:00.000Z"}
    assert msgspec.to_builtins(outage_data(over)) == usual | {
        "id": 1,
        "to": "2026-01-05T10:00:00.000Z",
        "reason": "disk",
        "refused": True,
        "incident": "20260105T100000Z",
        "sales": {"count": 2, "total": 590},
        "notified": ({"who": "distributor", "reference": "A-7", "at": "2026-01-05T10:00:00.000Z"},),
    }
    assert msgspec.to_builtins(outage_data(lasting)) == usual | {
        "id": 2,
        "to": None,
        "reason": "line_lost",
        "refused": False,
        "incident": None,
        "sales": {"count": 0, "total": 0},
        "notified": (),
    }
    assert (lasting.duration(NOW), lasting.duration(NOW - 2 * HOUR), over.duration(NOW + HOUR)) == (HOUR, 0, HOUR)


@pytest.mark.parametrize(
    ("at", "noted"),
    [
        (None, NOW),
        ("", NOW),
        ("2026-01-05T09:00:00Z", NOW - HOUR),
        ("2026-01-05T11:00:00Z", NOW + HOUR),
        ("2026-01-05T06:00:00Z", NOW - 4 * HOUR),
        ("2026-01-05T05:59:59.999Z", None),
        ("2026-01-05T11:00:00.001Z", None),
        ("2026-01-05T09:00:00", None),
        ("yesterday", None),
    ],
)
def test_a_notification_is_of_now_or_of_a_time_that_was(at: str | None, noted: int | None) -> None:
    """A clock may be an hour off the book's; any other future, a time before the outage that began three hours ago, or a time without its offset, is refused by its field."""
    body = {**FILED, "at": at, "colour": "red"}
    if noted is not None:
        assert read_notice(body, since=NOW - 3 * HOUR, now=NOW, strict=False) == Notice("administration", "A-7", noted)
        return
    with pytest.raises(InvalidRequest) as refused:
        read_notice(body, since=NOW - 3 * HOUR, now=NOW, strict=True)
    assert [error.field for error in refused.value.errors] == ["at", "colour"]
