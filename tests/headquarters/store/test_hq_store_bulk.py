"""Many values in one parameter: PostgreSQL reads them as they were."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headquarters.store.database import Database

TEXTS = st.text(st.characters(blacklist_characters="\0", blacklist_categories=("Cs",)))
HARD = ["", "NULL", "null", '"', "\\", "{}", ",", " a ", "é\n\t", "'; DROP TABLE closure; --", "\\x41"]


@pytest.fixture
def database(cluster):
    found = Database(cluster.dsn("postgres"))
    yield found
    found.close()


def test_as_they_were(database):
    """Texts, numbers, bytes and nothing at all, whatever they hold."""
    with database.read() as connection:

        def again(values, kind):
            return connection.exec_driver_sql(f"SELECT %s::{kind}[]", (values,)).scalar_one()

        @given(st.lists(TEXTS | st.sampled_from(HARD) | st.none(), max_size=5))
        def texts(values):
            assert again(values, "text") == values

        @given(st.lists(st.integers(-(2**63), 2**63 - 1) | st.none(), max_size=5))
        def numbers(values):
            assert again(values, "bigint") == values

        @given(st.lists(st.binary() | st.none(), max_size=5))
        def contents(values):
            assert again(values, "bytea") == values

        assert again(HARD, "text") == HARD
        assert again([True, False, None], "boolean") == [True, False, None]
        texts()
        numbers()
        contents()


def test_compressed_the_quick_way(database):
    """What boxes send is compressed by lz4 where PostgreSQL's build has it, as Debian's has."""
    with database.read() as connection:
        assert connection.exec_driver_sql("SHOW default_toast_compression").scalar_one() == "lz4"
