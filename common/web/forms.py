"""Fields of queries and forms."""

from __future__ import annotations

import contextlib
from typing import Final
from urllib.parse import parse_qs

MAX_FIELDS: Final = 200


def fields(text: str) -> dict[str, str]:
    """The first value of each field of a query or a form."""
    with contextlib.suppress(ValueError):
        return {name: values[0].strip() for name, values in parse_qs(text, max_num_fields=MAX_FIELDS).items()}
    return {}
