"""SQL lives beside the module that runs it, in blocks that begin with `-- name: …`; this reads them."""

from __future__ import annotations

import re
from importlib import resources

_NAME = re.compile(r"^-- name: (\w+)$", re.MULTILINE)

OUTBOX = "daemon.store.tables.outbox"
"""Written by events, sent from by the outbox, tidied by housekeeping: the one table with more than one module."""


def load(module: str, **parts: str) -> dict[str, str]:
    """The blocks of the `.sql` file beside `module` by name; `{part}` in them is replaced by what `parts` says."""
    package, _, name = module.rpartition(".")
    text = resources.files(package).joinpath(f"{name}.sql").read_text("utf-8")
    pieces = _NAME.split(text)
    blocks = dict(zip(pieces[1::2], (body.strip() for body in pieces[2::2]), strict=True))
    for part, columns in parts.items():
        blocks = {name: body.replace("{" + part + "}", columns) for name, body in blocks.items()}
    return blocks
