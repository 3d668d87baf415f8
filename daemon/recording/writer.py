"""Recordings brought to the disk, in the background: at most once a second, and at once when something is odd.

One thread writes for all lines. Nothing here is waited for by a till, and nothing that goes wrong here is more than a line
in the log: a disk that is full stops the recording, well before it stops the shop.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from pathlib import Path

import msgspec
import structlog

from bridge.recording.recording import LineEvent, Recorder, header, written
from daemon.recording.ring import BEFORE, Incident, RecordingRing

log = structlog.get_logger(__name__)

EVERY = 0.75
"""Seconds; with the writing itself, less than one is lost by a kill."""


class RecordingPlace(msgspec.Struct, frozen=True):
    """Where one line's files go. `limit`: bytes of the ring; `floor`: bytes that stay free on that disk for others."""

    folder: Path
    limit: int
    floor: int
    about: Mapping[str, str]


class LineFiles:
    """The files of one line; used by the writing thread alone."""

    def __init__(self, place: RecordingPlace) -> None:
        self._place = place
        self._header = header(place.about)
        self._ring = RecordingRing(place.folder, place.limit, self._header)
        self._incident: Incident | None = None
        self._trouble = ""

    def write(self, events: list[LineEvent], incident: str) -> None:
        """`incident`: the one under way, empty without one."""
        try:
            self._keep_room()
            self._end_incident(unless=incident)
            if events:
                self._write(written(events).encode("ascii"), events[0].at, incident)
        except OSError as error:
            self._log_change(error.strerror or str(error))
            self._drop_incident()
        else:
            self._log_change("")

    def close(self) -> None:
        try:
            self._end_incident(unless="")
        except OSError as error:
            self._log_change(str(error))
            self._drop_incident()
        self._ring.close()

    def _write(self, data: bytes, first: int, incident: str) -> None:
        before = b""
        if begins := bool(incident and self._incident is None):
            before = self._ring.tail(first - BEFORE)
        self._ring.append(data)
        if begins:
            self._incident = Incident(self._place.folder, incident, before, self._header)
        if self._incident is not None:
            self._incident.append(data)

    def _end_incident(self, *, unless: str) -> None:
        if self._incident is not None and self._incident.name != unless:
            ended, self._incident = self._incident, None
            ended.end()

    def _drop_incident(self) -> None:
        if self._incident is not None:
            self._incident.close()
            self._incident = None

    def _keep_room(self) -> None:
        self._place.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = os.statvfs(self._place.folder)
        if found.f_bavail * found.f_frsize < self._place.floor:
            raise OSError(0, "the disk is nearly full")

    def _log_change(self, trouble: str) -> None:
        """When it begins and when it ends."""
        if trouble == self._trouble:
            return
        self._trouble = trouble
        if trouble:
            log.warning("recording.stopped", folder=str(self._place.folder), reason=trouble)
        else:
            log.info("recording.goes_on", folder=str(self._place.folder))


class LineRecording:
    """One line's recorder, and when what it holds goes to its files. Lives on the event loop."""

    def __init__(self, place: RecordingPlace, thread: ThreadPoolExecutor) -> None:
        self.recorder = Recorder(self._on_event)
        self._files = LineFiles(place)
        self._thread = thread
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        self._writing: Future[None] | None = None

    def close(self) -> None:
        """What is held goes to the thread; whoever owns that waits for it."""
        self._disarm()
        self._thread.submit(self._files.write, self.recorder.take(), self.recorder.under_way)
        self._thread.submit(self._files.close)

    def _on_event(self, urgent: bool) -> None:
        if urgent:
            self._disarm()
        if self._timer is None:
            self._timer = self._loop.call_later(0.0 if urgent else EVERY, self._write)

    def _write(self) -> None:
        self._timer = None
        if self._writing is not None and not self._writing.done():  # a disk that stalls
            self._timer = self._loop.call_later(EVERY, self._write)
            return
        events, incident = self.recorder.take(), self.recorder.under_way
        self._writing = self._thread.submit(self._files.write, events, incident)
        if incident:  # so that its file is ended also when nothing more comes
            self._timer = self._loop.call_later(EVERY, self._write)

    def _disarm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


class Recordings:
    """Of all lines of this process."""

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="recording")
        self._lines: list[LineRecording] = []

    def open(self, place: RecordingPlace) -> Recorder:
        line = LineRecording(place, self._thread)
        self._lines.append(line)
        return line.recorder

    async def close(self) -> None:
        for line in self._lines:
            line.close()
        await asyncio.get_running_loop().run_in_executor(None, partial(self._thread.shutdown, wait=True))
