"""What stands in an address after the question mark, anybody may have written."""

import random

import pytest
from support.browser import Visitor
from support.shop import Shop

pytestmark = pytest.mark.long

SCREENS = (
    "/ui/", "/ui/today", "/ui/journal", "/ui/journal/1", "/ui/cash", "/ui/closures", "/ui/a", "/ui/x", "/ui/z", "/ui/attention",
    "/ui/box", "/ui/files", "/ui/files/jobs", "/ui/files/a/csv", "/ui/files/closures/json", "/ui/log", "/ui/account", "/ui/welcome",
)  # fmt: skip
NAMES = (
    "q", "amount", "type", "state", "from", "to", "before", "after", "m", "month", "year", "only", "done", "noted", "form", "z",
)  # fmt: skip
VALUES = (
    "", "0", "-1", "999999999", "9" * 30, "1e5", "٣", "１", "abc", "é", "\x00", "%", "\\", "_", "(", "'\"<script>", "a" * 500, "🧾",
    "2026-11-23", "2026-02-30", "0001-01-01", "9999-12-31", "2026-11", "2026-13", "certified", "begun", "FV", "FA", "EL02000015-1", "EL9",
)  # fmt: skip
DAYS = ("2026-02-30", "0001-01-01", "9999-12-31", "2026-11-23", "2026-13-01")
REQUESTS = 300


def test_no_query_is_a_fault_of_a_screen(shop: Shop) -> None:
    """Whatever is asked of a screen, by whichever names: it is shown, or says what is wrong. The same three hundred in each run."""
    dice = random.Random(7)
    with Visitor(shop, "technician") as technician:
        for _ in range(REQUESTS):
            names = dice.sample(NAMES, dice.randint(1, 4))
            queries = {name: dice.choice(DAYS if name in ("from", "to") else VALUES) for name in names}
            answer = technician.get(dice.choice(SCREENS), params=queries)
            assert answer.status_code < 500, (answer.request.url, answer.text[-200:])


def test_a_year_of_more_digits_than_a_number_has(shop: Shop) -> None:
    with Visitor(shop, "technician") as technician:
        sent = {"year": "9" * 5000, "form": "csv"}
        assert technician.post("/ui/files", data=sent, headers={"Sec-Fetch-Site": "same-origin"}).status_code == 422
