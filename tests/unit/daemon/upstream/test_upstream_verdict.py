"""What becomes of one try to deliver: the whole table."""

import pytest

from daemon.core.delivery import Delivered, DeliveryRefused, RetryLater
from daemon.upstream.options import verdict


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        *((status, Delivered) for status in (200, 201, 202, 204, 299, 409)),
        *((status, DeliveryRefused) for status in (400, 413, 422)),
        *(
            (status, RetryLater)
            for status in (199, 300, 302, 399, 401, 403, 404, 408, 410, 412, 414, 421, 423, 429, 500, 503, 599)
        ),
    ],
)
def test_what_a_status_says(status: int, kind: type) -> None:
    """Taken; wrong in itself and parked; anything else is set right over there, and tried again."""
    found = verdict(status, "why", 7.0)
    assert type(found) is kind
    if not isinstance(found, Delivered):
        assert found.error == f"answered {status} why"
    if isinstance(found, RetryLater):
        assert found.retry_after == 7.0


@pytest.mark.parametrize("status", [200, 409])
def test_an_answer_without_the_receipt_that_was_asked_for_is_none(status: int) -> None:
    """Some page of a hotel's network says 200: tried again, with what it said. A receipt is asked of nothing that was not taken."""
    assert verdict(status, "Welcome", None, has_receipt=False) == RetryLater(
        f"without a receipt answered {status} Welcome", None
    )
    assert verdict(400, "", None, has_receipt=False) == DeliveryRefused("answered 400")
