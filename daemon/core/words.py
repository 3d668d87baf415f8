"""What may be told to whoever asks over the network."""

from __future__ import annotations

import re

_PATH = re.compile(r"(?<![\w/])/(?:[\w.@+-]+/)*[\w.@+-]+")


def without_paths(text: str) -> str:
    """No path of the box leaves in a body (decision 11)."""
    return _PATH.sub("the port", text)
