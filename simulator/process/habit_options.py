"""The options of the command that set habits, made from `habits.FirmwareHabits`."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

import msgspec
from msgspec import inspect

from simulator.machine.habits import FirmwareHabits

_MS = 1000


def add_habits(add: Callable[..., object]) -> None:
    for field in msgspec.structs.fields(FirmwareHabits):
        told = inspect.type_info(field.type)
        if not isinstance(told, inspect.Metadata) or told.extra is None:
            raise TypeError(f"{field.name} says nothing of itself")
        flag, means = _flag(field.name, told.extra["unit"]), (told.extra_json_schema or {}).get("description", "")
        means = str(means).replace("%", "%%")
        if isinstance(told.type, inspect.BoolType):
            add(flag, action="store_true", help=means)
        elif isinstance(told.type, inspect.LiteralType):
            add(flag, choices=told.type.values, default=field.default, help=f"{means} (default {field.default})")
        else:
            kind = int if isinstance(told.type, inspect.IntType) else float
            add(flag, type=kind, default=field.default, metavar=told.extra["unit"].upper() or "N", help=means)


def read_habits(options: argparse.Namespace) -> dict[str, Any]:
    """As arguments of Options."""
    return {field.name: _value(options, field) for field in msgspec.structs.fields(FirmwareHabits)}


def _value(options: argparse.Namespace, field: msgspec.structs.FieldInfo) -> object:
    milliseconds = getattr(options, f"{field.name}_ms", None)
    return getattr(options, field.name) if milliseconds is None else milliseconds / _MS


def _flag(name: str, unit: str) -> str:
    flag = "--" + name.replace("_", "-")
    return f"{flag}-ms" if unit == "ms" else flag
