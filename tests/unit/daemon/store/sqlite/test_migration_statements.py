"""A migration is made statement by statement."""

import pytest

from daemon.store.sqlite.migrations import statements

TRIGGER = "CREATE TRIGGER t AFTER INSERT ON a BEGIN\n  DELETE FROM b;\n  DELETE FROM c;\nEND;\n"
TWO = TRIGGER + TRIGGER


@pytest.mark.parametrize(
    ("script", "count"),
    [
        ("", 0),
        ("DELETE FROM a;\n", 1),
        ("DELETE FROM a;", 1),
        ("DELETE\nFROM a;\nDELETE FROM b;\n", 2),
        (TWO, 2),
        ("-- first\nDELETE FROM a;\n\n-- last\n  \n  -- of all\n", 1),
        ("\n\n", 0),
    ],
)
def test_a_script_is_its_statements_and_what_says_nothing(script: str, count: int) -> None:
    """Each whole, a trigger with those that it holds; comments and blank lines after the last one are none."""
    found = list(statements(script))
    assert len(found) == count
    assert script.startswith("".join(found))


@pytest.mark.parametrize("script", ["DELETE FROM a", "DELETE FROM a;\nDELETE\n-- half\n", TRIGGER[:-6]])
def test_a_script_that_is_cut_off_is_refused(script: str) -> None:
    """Nobody runs the half of it."""
    with pytest.raises(ValueError, match="middle of a statement"):
        list(statements(script))
