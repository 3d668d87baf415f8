"""SQL lives in `sql/*.sql`, in blocks that begin with `-- name: …`; this reads them."""

from __future__ import annotations

import re
from importlib import resources

_NAME = re.compile(r"^-- name: (\w+)$", re.MULTILINE)


def load(room: str, **parts: str) -> dict[str, str]:
    """The blocks of `sql/<room>.sql` by name; `{part}` in them is replaced by what `parts` says."""
    text = resources.files("daemon.store").joinpath("sql", f"{room}.sql").read_text("utf-8")
    pieces = _NAME.split(text)
    blocks = dict(zip(pieces[1::2], (body.strip() for body in pieces[2::2]), strict=True))
    for part, columns in parts.items():
        blocks = {name: body.replace("{" + part + "}", columns) for name, body in blocks.items()}
    return blocks
