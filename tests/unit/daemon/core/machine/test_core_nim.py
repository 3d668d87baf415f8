"""What a machine is called (decisions 26 and 33)."""

import pytest

from daemon.core.machine.state import is_named, present_nim, same_machine, short_nim, taxpayer_of

BARE, FIRST, SECOND = "EL02000015", "EL02000015-1", "EL02000015-2"


@pytest.mark.parametrize(
    ("reported", "configured", "earlier", "present"),
    [
        (SECOND, FIRST, FIRST, SECOND),
        (BARE, FIRST, BARE, FIRST),
        (BARE, FIRST, SECOND, FIRST),
        (BARE, BARE, SECOND, SECOND),
        (BARE, "EL02000099-1", SECOND, SECOND),
        (BARE, "", FIRST, FIRST),
    ],
)
def test_what_a_machine_is_called_now(reported: str, configured: str, earlier: str, present: str) -> None:
    """As it says itself with its activation counter; else as the configuration has it, if it means this machine; else as it was."""
    assert present_nim(reported, configured, earlier) == present


@pytest.mark.parametrize(
    ("nim", "named"),
    [(FIRST, True), (SECOND, True), (BARE, True), (f"{BARE}-x", False), (f"{BARE}-", False), ("", False)],
)
def test_which_paths_name_a_machine(nim: str, named: bool) -> None:
    """With any activation counter, or with none: some firmware answers without it, and machines are compared up to the dash."""
    assert is_named(nim, FIRST) is named
    assert short_nim(FIRST) == short_nim(BARE) == BARE
    assert same_machine(FIRST, BARE)
    assert not same_machine(FIRST, "EL02000016-1")


@pytest.mark.parametrize("ifu", ["00084440Y", "12", "A 1"])
def test_what_is_no_taxpayer_is_none(ifu: str) -> None:
    """Before its activation a machine sends one character again and again, blanks or rubbish."""
    assert taxpayer_of(ifu) == ifu
    assert not any(map(taxpayer_of, ("", "000000000", "0-0", "   ", "Y", f"{ifu}\n", f"{ifu}é")))
