"""SQL lives beside the module that runs it, in blocks that begin with `-- name: …`; this reads them."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")

_CODE = Path(__file__).parents[3]
"""Where our packages lie."""
_NAME = re.compile(r"^-- name: (\w+)$", re.MULTILINE)

OUTBOX = "daemon.store.tables.outbox"
"""Written by events, sent from by the outbox, tidied by housekeeping: the one table with more than one module."""


def load(module: str, **parts: str) -> dict[str, str]:
    """The blocks of the `.sql` file beside `module` by name; `{part}` in them is replaced by what `parts` says."""
    text = Path(f"{_CODE}/{module.replace('.', '/')}.sql").read_text("utf-8")
    pieces = _NAME.split(text)
    blocks = dict(zip(pieces[1::2], (body.strip() for body in pieces[2::2]), strict=True))
    for part, columns in parts.items():
        blocks = {name: body.replace("{" + part + "}", columns) for name, body in blocks.items()}
    return blocks


def read_as(kind: Callable[..., T], found: sqlite3.Cursor) -> Iterator[T]:
    """Each row as `kind`, whose fields are called as the columns: their order says nothing, so a field more can shift no figure."""
    names = [name for name, *_ in found.description]
    for row in found:
        yield kind(**dict(zip(names, row, strict=True)))
