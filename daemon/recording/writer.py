"""Recordings brought to the disk, in the background: at most once a second, and at once when something is odd.

One thread writes for all lines. Nothing here is waited for by a till, and nothing that goes wrong here is more than a line
in the log: a disk that is full stops the recording, well before it stops the shop.

The files of one line's recording: a ring of the last megabytes, in files of an eighth of that each, and one for each incident:
the minute before something odd and the minute after it."""

from __future__ import annotations

import asyncio
import os
from bisect import bisect_left
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from pathlib import Path

import msgspec
import structlog

from bridge.recording.recording import LineEvent, Recorder, header, written

log = structlog.get_logger(__name__)

SEGMENTS = 8
MODE = 0o600
PATTERN = "ring-*.rec"
_DIGITS = 8
MOST_INCIDENTS = 50
INCIDENTS = "incident-*.rec"
BEFORE = 60_000_000
"""Microseconds."""
EVERY = 0.75
"""Seconds; with the writing itself, less than one is lost by a kill."""


class RecordingRing:
    """`limit` in bytes, of all files together. OSError from every method."""

    def __init__(self, folder: Path, limit: int, header: str) -> None:
        self._folder = folder
        self._share = max(limit // SEGMENTS, 1)
        self._header = header.encode()
        self._file = -1
        self._number = 0
        self._size = 0

    def append(self, data: bytes) -> None:
        """Half-written lines are closed off by what is written next."""
        try:
            if self._file < 0:
                self._go_on()
            if self._size + len(data) > self._share and self._size > len(self._header):
                self._begin(self._number + 1)
            self._size += append_all(self._file, data)
        except OSError:
            self.close()  # the next one begins on a line of its own
            raise

    def tail(self, since: int) -> bytes:
        """The lines from that microsecond on, as far as the last two files have them."""
        content = b"".join(file.read_bytes() for file in segments(self._folder)[-2:])
        lines = [line for line in content.splitlines(keepends=True) if line[:1].isdigit() and line.endswith(b"\n")]
        return b"".join(lines[bisect_left(lines, since, key=_time_of) :])

    def close(self) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def _go_on(self) -> None:
        """In the file that an earlier run left."""
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        last = max((_number(file) for file in segments(self._folder)), default=0)
        self._begin(max(last, 1))

    def _begin(self, number: int) -> None:
        self.close()
        path = self._folder / f"ring-{number:0{_DIGITS}d}.rec"
        self._file = open_to_append(path)
        self._number = number
        self._size = os.fstat(self._file).st_size
        # A new file, or one that a kill or a full disk left in the middle of a line.
        self._size += append_all(self._file, b"\n" + self._header if self._size else self._header)
        for old in segments(self._folder)[:-SEGMENTS]:
            old.unlink(missing_ok=True)


class Incident:
    """The one under way. OSError from every method."""

    def __init__(self, folder: Path, name: str, before: bytes, header: str) -> None:
        self.name = name
        self._file = open_to_append(path_of(folder, name))
        append_all(self._file, header.encode() + before)
        for old in listed(folder)[:-MOST_INCIDENTS]:
            path_of(folder, old).unlink(missing_ok=True)

    def append(self, data: bytes) -> None:
        append_all(self._file, data)

    def end(self) -> None:
        """Durable from here on: what comes after a doubt is often a power switch."""
        os.fdatasync(self._file)
        self.close()

    def close(self) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file = -1


def path_of(folder: Path, incident: str) -> Path:
    return folder / f"incident-{incident}.rec"


def listed(folder: Path) -> list[str]:
    """Their names, oldest first: each begins with its time."""
    return sorted(file.stem.partition("-")[2] for file in folder.glob(INCIDENTS))


def segments(folder: Path) -> list[Path]:
    """Oldest first."""
    return sorted(folder.glob(PATTERN), key=_number)


def open_to_append(path: Path) -> int:
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, MODE)


def append_all(file: int, data: bytes) -> int:
    view = memoryview(data)
    while view:
        view = view[os.write(file, view) :]
    return len(data)


def _number(file: Path) -> int:
    text = file.stem.partition("-")[2]
    return int(text) if text.isdigit() else 0


def _time_of(line: bytes) -> int:
    text = line.partition(b" ")[0]
    return int(text) if text.isdigit() else 0


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
        """The buffer goes to the thread, whose owner waits for it."""
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
