"""Tools of the system that a test cannot do without."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
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


@contextmanager
def folder_for_all() -> Iterator[Path]:
    """A new folder to which everybody may walk, as on a box. Not one of pytest's: they are root's alone, and the next run of pytest on this
    machine would make them so again."""
    with tempfile.TemporaryDirectory(prefix="mcfd-tests-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        for each in folder.parents[:-2]:  # a run in memory has its own, and a trial of a mistake has one below /tmp
            if each.stat().st_mode & 0o011 != 0o011:  # another's, as /dev/shm, cannot be changed and need not be
                each.chmod(each.stat().st_mode | 0o011)
        yield folder
