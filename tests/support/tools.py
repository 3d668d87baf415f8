"""Tools of the system that a test cannot do without."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import NoReturn

import pytest


def need(*tools: str) -> None:
    if missing := [tool for tool in tools if shutil.which(tool) is None]:
        cannot(f"{', '.join(missing)} not installed: apt-get install $(cat .ci/packages)")


def cannot(reason: str) -> NoReturn:
    """A skip at home; a failure in CI, where everything has to run."""
    if os.environ.get("CI"):
        pytest.fail(reason)
    pytest.skip(reason)


def let_others_through(folder: Path) -> None:
    """Pytest's own folders are root's alone; on a box everybody may walk to where the daemon's user has its files."""
    for each in (folder, *folder.parents):
        if each.stat().st_uid == 0 and each != each.parent and not each.stat().st_mode & 0o001:
            each.chmod(each.stat().st_mode | 0o011)
