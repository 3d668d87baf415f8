"""In which order things come on the disk, which only a power cut would show otherwise."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest


def disk_steps(monkeypatch: pytest.MonkeyPatch, root: Path) -> list[tuple[str, str]]:
    """What comes on the disk, which link is made and which file takes another's place, in order, as paths below `root`."""
    messages: list[tuple[str, str]] = []

    def spied(of: Any, what: str, path_of: Callable[..., Path]) -> None:
        real = getattr(of, what)

        def spy(*arguments: Any, **named: Any) -> Any:
            messages.append((what, str(path_of(*arguments).relative_to(root))))
            return real(*arguments, **named)

        monkeypatch.setattr(of, what, spy)

    spied(os, "fsync", lambda descriptor: Path(f"/proc/self/fd/{descriptor}").readlink())
    spied(os, "link", lambda _, under: Path(under))
    spied(Path, "replace", lambda _, target: Path(target))
    return messages
