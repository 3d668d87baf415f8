"""The fiscal memory on disk: the state itself, replaced as a whole and durable before the answer leaves, and beside it the
log of certified invoices, for tests to compare with."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec

from simulator.machine.fiscal_memory import CertifiedInvoice, Snapshot
from simulator.machine.machine import SimulatedMachine

_LOG_SUFFIX = ".log"


class StateFileError(Exception):
    pass


class StateFile:
    """`FILE` is the truth; `FILE.log` is cut back to it at the start, if a kill came between the two."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._log_path = path.with_name(path.name + _LOG_SUFFIX)
        self._fresh = path.with_name(f".{path.name}.new")
        self._revision = -1
        self._log = os.open(self._log_path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        self._directory = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)

    def load(self, machine: SimulatedMachine) -> None:
        """Into the machine; from then on every change of it is to be kept. StateFileError when it cannot be read."""
        snapshot = self._read()
        if snapshot is not None:
            machine.restore(snapshot)
        machine.fiscal.log.extend(self._read_log(machine.fiscal.tc))
        machine.fiscal.on_certified = self._append

    def keep(self, machine: SimulatedMachine) -> None:
        if machine.fiscal.revision == self._revision:
            return
        descriptor = os.open(self._fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        try:
            os.write(descriptor, msgspec.json.encode(machine.snapshot()))
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        self._fresh.replace(self._path)
        os.fsync(self._directory)
        self._revision = machine.fiscal.revision

    def close(self) -> None:
        os.close(self._log)
        os.close(self._directory)

    def _read(self) -> Snapshot | None:
        try:
            return msgspec.json.decode(self._path.read_bytes(), type=Snapshot)
        except FileNotFoundError:
            return None
        except msgspec.DecodeError as error:
            raise StateFileError(f"{self._path} is not a state of this simulator: {error}") from error

    def _read_log(self, tc: int) -> list[CertifiedInvoice]:
        lines = self._log_path.read_bytes().splitlines(keepends=True)
        entries = []
        size = 0
        for line in lines:
            try:
                entry = msgspec.json.decode(line, type=CertifiedInvoice)
            except msgspec.DecodeError:
                break
            if not line.endswith(b"\n") or entry.tc > tc:
                break
            entries.append(entry)
            size += len(line)
        os.ftruncate(self._log, size)
        return entries

    def _append(self, entry: CertifiedInvoice) -> None:
        os.write(self._log, msgspec.json.encode(entry) + b"\n")
