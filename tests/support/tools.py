"""Tools of the system that a test cannot do without."""

from __future__ import annotations

import os
import shutil
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
