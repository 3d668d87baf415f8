"""`make mutate` puts a mistake into the functions that a process has, or says that it could not."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest
from mutate.mistakes import Mistake, mistakes
from mutate.spoiled import TREE, alive, spoil

from daemon.usecases.delivery.backoff import Backoff

FILE = "daemon/usecases/delivery/backoff.py"


@pytest.fixture
def mistake(monkeypatch: pytest.MonkeyPatch) -> Iterator[Mistake]:
    """The first of `Backoff.wait`; what it was put into is as before afterwards."""
    monkeypatch.setattr("mutate.spoiled.spoil_imports", lambda _: None)
    code = Backoff.wait.__code__
    yield next(each for each in mistakes(FILE, (TREE / FILE).read_bytes()) if each.line > code.co_firstlineno)
    Backoff.wait.__code__ = code


def test_a_mistake_is_put_into_what_was_frozen(mistake: Mistake) -> None:
    """As all is that pytest has collected: the collector does not know of it any more."""
    code = Backoff.wait.__code__
    gc.freeze()
    try:
        assert spoil(mistake, alive())
        assert gc.get_freeze_count()
    finally:
        gc.unfreeze()
    assert Backoff.wait.__code__ != code


def test_a_function_that_is_not_found_is_not_taken_for_one_that_is_imported_later(mistake: Mistake) -> None:
    """Its module is here: the tests would run without the mistake, and each mistake would survive."""
    assert not spoil(mistake, {})
