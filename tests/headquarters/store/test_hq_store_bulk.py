"""Many values in one parameter: PostgreSQL reads them as they were."""

from __future__ import annotations

import psycopg
from hypothesis import given
from hypothesis import strategies as st

from headquarters.store.bulk import array_text

TEXTS = st.text(st.characters(blacklist_characters="\0", blacklist_categories=("Cs",)))
HARD = ["", "NULL", "null", '"', "\\", "{}", ",", " a ", "é\n\t", "'; DROP TABLE closure; --", "\\x41"]


def test_as_they_were(cluster):
    """Texts, numbers, bytes and nothing at all, whatever they hold."""
    with psycopg.connect(cluster.dsn("postgres")) as connection:

        def again(values, kind):
            return connection.execute(f"SELECT %s::{kind}[]", [array_text(values)]).fetchone()[0]

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
