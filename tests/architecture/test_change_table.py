"""The picture of docs/architecture.md; that what its tables name is there, `test_named_paths.py` shows."""

from layout import PAGE, page_with, picture


def test_the_picture_is_the_house() -> None:
    """docs/architecture.md shows the packages and arrows that the imports have; `make layout` writes it anew."""
    assert page_with(picture()) == PAGE.read_text(), "run make layout"
