"""Our arithmetic against the machine's subtotal, before anything is paid."""

import pytest
from core_samples import body, read

from daemon.core.agreement import agree
from daemon.core.certification import Subtotal
from daemon.core.errors import MachineNonsense
from daemon.core.invoice import TaxLine

HT = {"priceMode": "HT"}
ITEM = {"name": "Riz", "taxGroup": "B", "unitPrice": 103, "quantity": 1}


def test_in_ht_mode_the_machine_s_total_counts_within_a_franc_an_item() -> None:
    """Decision 24: the largest payment carries the difference."""
    agreed = agree(read(body(ITEM, pay=122, **HT)), Subtotal(121, (TaxLine("B", 1800, 103, 18, 121),), 0))
    assert (agreed.total_ttc, agreed.payments[0].amount, agreed.taxes[0].tva) == (121, 121, 18)


@pytest.mark.parametrize(
    ("mode", "total", "ttc"),
    [("HT", 124, 124), ("HT", 122, 121), ("HT", 122, 103), ("TTC", 121, 121)],
)
def test_a_subtotal_that_is_too_far_off_or_does_not_add_up_is_not_paid(mode: str, total: int, ttc: int) -> None:
    """Two francs for one item, groups that do not come to the total, or any difference in TTC mode."""
    ours = read(body(ITEM, pay=122, **HT) if mode == "HT" else body({"name": "x", "taxGroup": "B", "amountTtc": 122}))
    with pytest.raises(MachineNonsense):
        agree(ours, Subtotal(total, (TaxLine("B", 1800, 103, ttc - 103, ttc),), 0))
