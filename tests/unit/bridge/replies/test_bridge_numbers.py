"""Numbers, times, codes and NIM of a reply, in each spelling of a machine in good order."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.processor import within

from bridge.errors import Nonsense
from bridge.replies import numbers
from bridge.replies.answers import SubtotalReply, _total_or_rate
from bridge.replies.numbers import Rejoining

FIFTEEN_THOUSAND = [
    "15000", "15000.0", "15000.00", "15000,00", "00015000", " 15000 ", "15 000", "15\u202f000,00", "15\u00a0000", "15'000",
    "15.000", "15,000", "15,000.00", "15.000,00", "15000 F", "15000.00 FCFA", "15000XOF", "15000.", "15000.004",
]  # fmt: skip


@pytest.mark.parametrize("text", FIFTEEN_THOUSAND)
def test_one_amount_in_each_spelling(text: str) -> None:
    """Decimals or none, point or comma, thousands set apart, leading zeros, blanks, a unit."""
    assert numbers.read_hundredths(text, "x") == 1_500_000
    assert numbers.read_money(text, "x") == 15_000


@pytest.mark.parametrize(
    ("text", "hundredths"),
    [
        ("", 0), ("  ", 0), ("0", 0), (".5", 50), ("0,05", 5), ("2288,14", 228_814), ("2288.135", 228_814),
        ("18%", 1800), ("18,00 %", 1800), ("1.234.567", 123_456_700), ("1,234,567.5", 123_456_750), ("0.125", 13),
        ("1.005", 100_500), (",5", 50), ("9" * 15 + ".50", 99999999999999950), ("0" * 15, 0),
    ],
)  # fmt: skip
def test_decimals_zeros_and_thousands(text: str, hundredths: int) -> None:
    """Empty is zero; three digits after a lone separator are thousands, since nothing on the line has three decimals."""
    assert numbers.read_hundredths(text, "x") == hundredths


@given(st.integers(0, 10**13))
def test_every_amount_comes_back(hundredths: int) -> None:
    """With two decimals, with a comma, and with thousands set apart."""
    text = f"{hundredths // 100}.{hundredths % 100:02d}"
    spaced = f"{hundredths // 100:,}.{hundredths % 100:02d}".replace(",", " ")
    assert {numbers.read_hundredths(each, "x") for each in (text, text.replace(".", ","), spaced)} == {hundredths}
    assert numbers.francs(hundredths) == int(hundredths / 100 + 0.5)


@pytest.mark.parametrize(
    "text",
    ["-1", "+1", "1e3", "1_0", "NaN", "١", "9" * 16, "1.2.3", "1,2,3", "1.5000.0", "12,34.5", "1,234,56", "x", "1 x"],
)
def test_no_other_spelling_is_an_amount(text: str) -> None:
    """What is no number is an error, never guessed at."""
    for read in (numbers.read_hundredths, numbers.read_money):
        with pytest.raises(Nonsense, match="the total cannot be read"):
            read(text, "the total")
    with pytest.raises(Nonsense):
        numbers.read_counter(text if text != "9" * 16 else "9" * 19, "TC")
    with pytest.raises(Nonsense):
        numbers.read_time(text, "DT")
    assert numbers.read_time_if_any(text) == ""


def test_counters_in_each_spelling() -> None:
    """Leading zeros, blanks, needless decimals; a counter of half a transaction is none."""
    assert [numbers.read_counter(text, "x") for text in ("0012", " 12", "12.00", "1 234", "", "9" * 18)] == [
        12, 12, 12, 1234, 0, int("9" * 18),
    ]  # fmt: skip
    with pytest.raises(Nonsense):
        numbers.read_counter("12.5", "TC")


@pytest.mark.parametrize(
    "text",
    [
        "20260731093000", "2026-07-31 09:30:00", "2026-07-31T09:30:00Z", "2026/07/31 09:30:00", "31/07/2026 09:30:00",
        "31-07-2026 09:30", " 20260731093000 ", "202607310930",
    ],
)  # fmt: skip
def test_times_become_fourteen_digits(text: str) -> None:
    """Also with separators, day first, or without seconds."""
    assert numbers.read_time(text, "DT") == "20260731093000"


def test_codes_and_nims() -> None:
    """Dashes and blanks leave a code, whose other characters stay as they came; a NIM in small letters is that NIM."""
    assert numbers.read_code(" TEST-FACT 0123 ") == "TESTFACT0123"
    assert numbers.read_code("abc/1") == "abc/1"
    assert numbers.read_nim(" el02000015-1 ") == "EL02000015-1"
    for read, text in (
        (numbers.read_code, " - "),
        (numbers.read_code, "é"),
        (numbers.read_nim, "EL0200001"),
        (numbers.read_nim, ""),
    ):
        with pytest.raises(Nonsense):
            read(text)


def test_nonsense_shows_little_of_what_came() -> None:
    """A log line stays short, and holds no more than forty characters of the answer; forty are all there."""
    for text, view in (("x" * 200, "x" * 40 + "…"), ("x" * 41, "x" * 40 + "…"), ("x" * 40, "x" * 40)):
        with pytest.raises(Nonsense) as nonsense:
            numbers.read_counter(text, "TC")
        assert str(nonsense.value) == f"TC cannot be read: {view!r}"


def test_numbers_that_their_own_commas_cut_are_put_together() -> None:
    """Decimals and thousands; a zero stands alone; what cannot come to so many numbers is none."""

    assert Rejoining(3).read(["15000", "00", "0", "2288", "14"]) == [1_500_000, 0, 228_814]
    thousands = Rejoining(3).read(["15", "000", "0", "1", "234", "567"])
    assert thousands == [1_500_000, 0, 123_456_700]
    assert Rejoining(2).read(["15000", "00", "7"]) == [1_500_000, 700]
    assert Rejoining(3, whole=True).read(["15000", "14", "7"]) == [1_500_000, 1400, 700]
    for unknown in (["NEUF"], ["0", "NEUF"], ["a", "b", "c"], ["a", "b", "c", "d"]):
        assert Rejoining(2).read(["15000", "00", "0", *unknown]) == [1_500_000, 0]
    assert Rejoining(2).read(["15000", "00", "0", "a", "b", "c", "d", "e"]) is None
    assert Rejoining(4).read(["1", "2"]) is None
    assert Rejoining(1).read(["15", "7"]) == [1500]
    assert Rejoining(2).read(["7", "05"]) is None
    assert Rejoining(1).read(["1", "234.5", "678"]) == [123_450]
    assert Rejoining(1).read(["1", "234", "567", "NEUF"]) == [123_456_700]


@pytest.mark.parametrize(
    ("place", "hundredths", "may_be"),
    [(0, 0, False), (0, 1, True), (1, 0, True), (1, 1, False), (2, 0, True), (2, 10_000, True), (2, 10_001, False)],
)
def test_what_may_stand_in_a_state_after_the_number(place: int, hundredths: int, may_be: bool) -> None:
    """A total that is not nought, then the rate of group A, which is exempt by law, then fifteen of 100 % at the most."""
    assert _total_or_rate(place, hundredths) is may_be


def test_a_list_made_to_be_searched_for_ever_is_given_up_soon() -> None:
    """Two hundred pieces with ways without number, none of which fits; not before some thousand steps."""
    looked = 0

    def may_be(*_: int) -> bool:
        nonlocal looked
        looked += 1
        return True

    with within(2):
        assert Rejoining(60, may_be=may_be, fits=lambda _: False).read(["10"] * 106) is None
    assert 4000 < looked < 12_000


@pytest.mark.parametrize(("steps", "found"), [(4_999, [700]), (5_000, None)])
def test_a_search_has_five_thousand_steps(steps: int, found: list[int] | None) -> None:
    """A piece that is no number takes one."""
    search = Rejoining(1)
    for _ in range(steps):
        assert search.read(["NEUF"]) is None
    assert search.read(["7"]) == found


@pytest.mark.parametrize(
    ("count", "found"),
    [
        (1, [1_234_567_890_123]),
        (2, [1_234_567_890, 123]),
        (3, [1_234_567, 890, 123]),
        (4, [1_234, 567, 890, 123]),
        (5, [1, 234, 567, 890, 123]),
    ],
)
def test_as_many_thousands_go_together_as_leave_enough_numbers(count: int, found: list[int]) -> None:
    """The longest number first, down to one without thousands; a number has five groups of digits at the most."""
    pieces = ["1", "234", "567", "890", "123"]
    assert Rejoining(count).read(pieces) == [francs * 100 for francs in found]
    longer = Rejoining(count + 1).read([*pieces, "456"])
    assert longer == [francs * 100 for francs in (*found, 456)]


@pytest.mark.parametrize(
    ("text", "more", "total", "groups", "vat"),
    [
        ("100.02,100,02", 32, 10_002, (10_000, 200), 0),
        ("100.03,100,03", 32, 10_003, (10_003, 0), 0),
        ("101.00,100,00", 32, 10_100, (10_000, 0), 0),
        ("10,02,10", 32, 1_000, (200, 1_000), 0),
        ("500,00,500", 31, 50_000, (0, 50_000), 0),
        (f"105,01,100,01,5{',0' * 14},1", 16, 10_501, (10_001, 500), 100),
        (f"105,01,100,01,5{',0' * 12},1,0,1", 16, 10_501, (10_001, 500), 100),
    ],
)
def test_a_subtotal_is_read_as_it_stands_where_its_groups_come_to_the_total(
    text: str, more: int, total: int, groups: tuple[int, int], vat: int
) -> None:
    """Within a franc for each of them, or where it has no more fields than numbers; else a comma was for the decimal point. VAT is less than what
    it is of."""
    found = SubtotalReply.read(text + ",0" * more)
    assert (found.total, found.groups[:2], sum(found.vat), found.specific) == (total, groups, vat, 0)
