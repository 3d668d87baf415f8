# ruff: noqa: INP001 -- beside the scripts of the build; a package of this name would hide PyPI's `packaging`
"""setuptools' build backend, which first compiles the catalogues of texts (pyproject.toml, [build-system])."""

from __future__ import annotations

from typing import Any

from catalogue import FOLDER, compile_catalogues
from setuptools import build_meta
from setuptools.build_meta import (
    build_sdist,
    get_requires_for_build_editable,
    get_requires_for_build_sdist,
    get_requires_for_build_wheel,
    prepare_metadata_for_build_editable,
    prepare_metadata_for_build_wheel,
)

__all__ = [
    "build_editable",
    "build_sdist",
    "build_wheel",
    "get_requires_for_build_editable",
    "get_requires_for_build_sdist",
    "get_requires_for_build_wheel",
    "prepare_metadata_for_build_editable",
    "prepare_metadata_for_build_wheel",
]


def build_wheel(*arguments: Any, **named: Any) -> str:
    compile_catalogues(FOLDER)
    return build_meta.build_wheel(*arguments, **named)


def build_editable(*arguments: Any, **named: Any) -> str:
    compile_catalogues(FOLDER)
    return build_meta.build_editable(*arguments, **named)
