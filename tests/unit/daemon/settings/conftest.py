"""What is told is told in English."""

import pytest


@pytest.fixture(autouse=True)
def in_english(monkeypatch):
    monkeypatch.setenv("LC_ALL", "en_GB.UTF-8")
