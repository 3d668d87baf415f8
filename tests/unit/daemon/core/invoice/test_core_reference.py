"""What a credit note refers to has one form, however it is written (decision 26, SECeF 2.10.3)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.core_samples import NIM, credit_body, read

from daemon.core.errors import InvalidRequest
from daemon.core.invoice.number import Reference, read_reference

DASHES = "-\u2010\u2011\u2012\u2013\u2014\u2212\uff0d"


@st.composite
def spellings(draw: st.DrawFn, reference: Reference) -> str:
    """One of the ways in which people and tills write the same reference."""
    parts = [draw(st.sampled_from([reference.machine, reference.machine.lower()]))]
    if reference.activation is not None:
        parts.append("0" * draw(st.integers(0, 3)) + str(reference.activation))
    parts.append("0" * draw(st.integers(0, 5)) + str(reference.counter))
    text = parts[0] + "".join(draw(st.sampled_from(DASHES)) + part for part in parts[1:])
    return draw(st.sampled_from(["", " "])) + text + draw(st.sampled_from(["", " "]))


references = st.builds(
    Reference, st.sampled_from(["EL02000015", "BF12345678"]), st.none() | st.integers(0, 99), st.integers(0, 10**9)
)


@given(st.data(), references)
def test_each_spelling_of_a_reference_is_the_same_reference(data: st.DataObject, reference: Reference) -> None:
    """Small letters, leading zeros, another dash, a blank around it; and its text is read back as itself."""
    assert read_reference(data.draw(spellings(reference))) == reference
    assert read_reference(str(reference)) == reference


@pytest.mark.parametrize(
    "text",
    [
        *("", "RRR", "-7", "7", "EL02000015", "EL02000015-", "EL02000015-x", "EL02000015-1-x", "EL02000015-1-1-1"),
        *("EL2000015-1-7", "EL002000015-1-7", "E102000015-1-7", "EL02000015--7", "EL02000015 7", "EL02000015-1-²"),
        *(f"{NIM}-{'9' * 19}", "EL02000015-1234567890-1", "EL02000015-1-7\u200b", "EL02000015-1-٧"),
    ],
)
def test_what_names_no_invoice(text: str) -> None:
    """A NIM has two letters and eight digits, and no counter has more than 18 (protocol 3)."""
    assert read_reference(text) is None


@pytest.mark.parametrize(
    ("text", "form"),
    [
        ("el02000015-01-0007", "EL02000015-1-7"),
        *((" rrr ", "RRR"), ("RRR", "RRR"), ("EL02000015-1", "EL02000015-1")),
        *((text, None) for text in ("", None, " ", "RR", 7)),
    ],
)
def test_a_credit_note_is_kept_with_the_one_form(text: object, form: str | None) -> None:
    """So journal, paper and machine have it; `EL02000015-1` is the sale 1 of a machine without an activation counter. Without one the field is named."""
    if form:
        assert read(credit_body(creditNoteRef=text), credit=True).reference == form
        return
    with pytest.raises(InvalidRequest) as refused:
        read(credit_body(creditNoteRef=text), credit=True)
    assert [error.field for error in refused.value.errors] == ["creditNoteRef"]
