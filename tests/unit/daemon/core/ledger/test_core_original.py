"""Which sale a credit note is of: machine, activation, counter and family (SECeF 2.12.4)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daemon.core.errors import CreditExceedsOriginal, InvalidRequest, MachineBusy
from daemon.core.invoice.number import Reference, read_reference
from daemon.core.ledger.original import (
    Name,
    PossibleOriginal,
    booked_on,
    choose,
    locate,
    one_reference,
    read_original_number,
)

BARE = "EL02000015"
PRESENT = [Name(1, 3, f"{BARE}-4", is_present=True)]
BEFORE = [Name(1, 1, f"{BARE}-1", is_present=False), Name(1, 2, f"{BARE}-2", is_present=False)]
NEVER_SUFFIXED = [Name(1, 1, BARE, is_present=False), Name(1, 2, BARE, is_present=True)]
RENAMED = [Name(1, 1, BARE, is_present=False, goes_on=True), Name(1, 2, f"{BARE}-1", is_present=True)]
TWO_TAXPAYERS = [Name(1, 1, f"{BARE}-1", is_present=False), Name(2, 1, f"{BARE}-2", is_present=True)]


def reference(text: str) -> Reference:
    found = read_reference(text)
    assert found
    return found


@pytest.mark.parametrize(
    ("names", "text", "places"),
    [
        (PRESENT, "EL02000015-4-7", ((1, 3),)),
        (BEFORE + PRESENT, "EL02000015-1-7", ((1, 1),)),
        (BEFORE + PRESENT, "EL02000015-3-7", ()),  # it was there, and no book has it
        (NEVER_SUFFIXED, "EL02000015-7", ((1, 2),)),
        (NEVER_SUFFIXED, "EL02000015-1-7", ((1, 2),)),
        (NEVER_SUFFIXED, "EL02000015-2-7", ((1, 2),)),
        (RENAMED, "EL02000015-7", ((1, 1), (1, 2))),  # its counters went on: there is one sale 7
        (RENAMED, "EL02000015-1-7", ((1, 2), (1, 1))),
        (TWO_TAXPAYERS, "EL02000015-1-7", ((1, 1),)),
        (TWO_TAXPAYERS, "EL02000015-2-7", ((2, 1),)),
        ([], "BF12345678-9-7", ()),
        *((PRESENT, text, None) for text in ("EL02000015-5-7", "EL02000015-0-7", "EL02000015-7")),
        (BEFORE + PRESENT, "EL02000015-17-7", None),
        (TWO_TAXPAYERS, "EL02000015-3-7", None),
        (NEVER_SUFFIXED, "EL02000015-0-7", None),
        *(([], text, None) for text in ("BF12345678-0-7", "BF12345678-7")),
    ],
)
def test_where_a_sale_is_looked_for(names: list[Name], text: str, places: tuple | None) -> None:
    """In the epochs in which its machine had that name; nowhere for a machine of elsewhere, which has any activation. Then where its counters went on: a
    machine that was reset may have come to the same counters before it was read (seed 3100644), and the name decides. An activation that never was is refused: the counter begins
    with 1 (SECeF 2.5.3); so is one that is left out where the machine has always had one."""
    if places is not None:
        assert locate(reference(text), names) == places
        return
    with pytest.raises(InvalidRequest) as refused:
        locate(reference(text), names)
    assert [error.field for error in refused.value.errors] == ["creditNoteRef"]


def sale(id_: int, type_: str, total: int = 1000, credited: int = 0, claimed: int | None = None) -> PossibleOriginal:
    return PossibleOriginal(id_, f"N-{id_}", type_, total, 1, credited, credited if claimed is None else claimed)


@pytest.mark.parametrize(
    ("credit", "own", "other"), [("FA", ("FV", "FT"), ("EV", "ET")), ("EA", ("EV", "ET"), ("FV", "FT"))]
)
def test_a_credit_note_is_of_a_sale_of_its_family(credit: str, own: tuple, other: tuple) -> None:
    """Beside one another family's sale with the same counter, and refused for that one alone."""
    for mine in own:
        for theirs in other:
            assert choose("R", credit, 1000, [sale(1, theirs), sale(2, mine)]) == sale(2, mine)
            with pytest.raises(InvalidRequest, match=f"creditNoteRef: is a {theirs}; {credit} credits {own[0]}"):
                choose("R", credit, 1000, [sale(1, theirs)])
    assert choose("R", credit, 1000, []) is None
    # An export that has the counter of the sale before it, which is in no ledger.
    assert choose("R", "FA", 1000, [sale(1, "EV")._replace(moved=0)]) is None
    assert choose("R", credit, 1000, [sale(1, "VENTE")]) == sale(1, "VENTE")  # taken over in words of the machine's own


def test_a_sale_of_another_program_that_left_fvc_where_it_was_is_an_export() -> None:
    """Taken over in words of the machine's own, it has the FVC of the sale before it: a credit note beyond that sale's total is not booked on it."""
    exported = sale(2, "VENTE", 15_000)._replace(moved=0)
    with pytest.raises(CreditExceedsOriginal):
        choose("R", "FA", 800, [exported, sale(1, "FV", 1000, 300)])
    assert choose("R", "EA", 800, [exported, sale(1, "FV", 1000, 300)]) == exported


def test_of_exports_with_one_counter_the_one_that_fits_best_is_meant() -> None:
    """A machine that counts them in TC alone gives them all the FVC of the sale before."""
    exports = [sale(1, "EV", 10_000), sale(2, "EV", 3_000), sale(3, "ET", 10_000, 4_000)]
    for amount, chosen in ((3_000, 2), (6_000, 3), (10_000, 1), (2_500, 2)):
        found = choose("R", "EA", amount, exports)
        assert found
        assert found.id == chosen
    with pytest.raises(CreditExceedsOriginal) as refused:
        choose("R", "EA", 10_001, exports)
    assert (refused.value.original_ttc, refused.value.credited_ttc) == (10_000, 10_001)


def test_what_has_no_outcome_yet_is_waited_for() -> None:
    """It may be certified or not: nothing is sent, and the till comes again."""
    for amount in (600, 700):
        with pytest.raises(MachineBusy, match="nothing was sent"):
            choose("R", "FA", amount, [sale(1, "FV", 1000, 300, 1000)])
    with pytest.raises(CreditExceedsOriginal):
        choose("R", "FA", 701, [sale(1, "FV", 1000, 300, 1000)])
    # The machine's total of the credit note may be lower by the leeway of HT mode.
    assert choose("R", "FA", 702, [sale(1, "FV", 1000, 300)], leeway=2)
    with pytest.raises(MachineBusy):
        choose("R", "FA", 702, [sale(1, "FV", 1000, 300, 1000)], leeway=2)
    with pytest.raises(CreditExceedsOriginal, match="700"):
        choose("R", "FA", 703, [sale(1, "FV", 1000, 300)], leeway=2)


@given(st.lists(st.tuples(st.integers(1, 50), st.integers(0, 60)), min_size=1, max_size=5), st.integers(1, 60))
def test_none_is_taken_beyond_its_total(exports: list[tuple[int, int]], amount: int) -> None:
    """Whatever is left of each: what is chosen has room, and nothing is refused that has."""
    candidates = [sale(at, "EV", total, min(taken, total)) for at, (total, taken) in enumerate(exports, 1)]
    rooms = [each.total_ttc - each.claimed for each in candidates]
    if max(rooms) < amount:
        with pytest.raises(CreditExceedsOriginal):
            choose("R", "EA", amount, candidates)
        assert booked_on("EA", amount, candidates) == 1
        return
    found = choose("R", "EA", amount, candidates)
    assert found
    assert found.total_ttc - found.claimed == min(room for room in rooms if room >= amount)
    assert booked_on("EA", amount, candidates) == found.id


def test_a_credit_note_that_is_certified_is_booked_wherever_it_may_belong() -> None:
    """On a sale of its family first, whatever is left of it; on another one where there is none."""
    assert booked_on("FA", 500, [sale(1, "EV", 500), sale(2, "FV", 400)]) == 2
    assert booked_on("FA", 500, [sale(1, "EV", 500)]) == 1
    assert booked_on("FA", 500, [sale(1, "FV", 600), sale(2, "FV", 500)]) == 2  # exactly all of it
    assert booked_on("FA", 500, []) == 0


SOLD = ("EL02000015-1", 7)
ELSEWHERE = ("EL02000099-1", 3)


@pytest.mark.parametrize(
    ("found", "sent", "meant"),
    [
        ([SOLD], None, "EL02000015-1-7"),
        ([SOLD], "EL02000015-1-7", "EL02000015-1-7"),
        ([SOLD], "EL02000015-7", "EL02000015-1-7"),
        ([SOLD, ELSEWHERE], "EL02000099-1-3", "EL02000099-1-3"),
        ([], None, "is not the number"),
        ([], "EL02000015-1-7", "is not the number"),
        ([SOLD, ELSEWHERE], None, r"several sales \(EL02000015-1-7, EL02000099-1-3\)"),
        *(([SOLD], sent, "is EL02000015-1-7, and") for sent in ("EL02000015-1-8", "EL02000015-2-7", "RRR", "", 7)),
    ],
)
def test_a_sale_is_named_by_its_number(found: list[tuple[str, int]], sent: object, meant: str) -> None:
    """Where one sale of the box has it; `creditNoteRef` beside it may choose one of several, and not say another one."""
    if found and meant.startswith("EL"):
        assert one_reference(found, sent) == meant
        return
    with pytest.raises(InvalidRequest, match=f"originalInvoiceNumber: .*{meant}"):
        one_reference(found, sent)


def test_the_number_of_the_sale_is_read_as_that_of_an_invoice() -> None:
    """A text that an invoice could have as its number, and refused by its field otherwise."""
    assert read_original_number({"originalInvoiceNumber": "F-1"}) == "F-1"
    for wrong in (None, "", [], "F" * 41):
        with pytest.raises(InvalidRequest, match="originalInvoiceNumber"):
            read_original_number({"originalInvoiceNumber": wrong})
