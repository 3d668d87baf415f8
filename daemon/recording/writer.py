"""Writes recordings to the disk in the background: at most once a second, and at once for an incident.

One thread writes for all lines. No till waits for it, and an error here is only a line in the log: a full disk stops
the recording long before sales. A line's files are a ring of the last megabytes, in eight files, and one file for each
incident: the minute before it and the minute after it."""

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
MAX_INCIDENTS = 50
INCIDENTS = "incident-*.rec"
BEFORE = 60_000_000
"""Microseconds of the ring that an incident's file begins with."""
EVERY = 0.75
"""Seconds between two writes; a kill then loses less than one second."""


class RecordingRing:
    """`limit` is the bytes of all files together. Every method may raise OSError."""

    def __init__(self, folder: Path, limit: int, header: str) -> None:
        self._folder = folder
        self._share = max(limit // SEGMENTS, 1)
        self._header = header.encode()
        self._file = -1
        self._number = 0
        self._size = 0

    def append(self, data: bytes) -> None:
        """An incomplete line of an earlier run is ended first."""
        try:
            if self._file < 0:
                self._continue_file()
            if self._size + len(data) > self._share and self._size > len(self._header):
                self._begin(self._number + 1)
            self._size += append_all(self._file, data)
        except OSError:
            self.close()  # the next write begins on a new line
            raise

    def tail(self, since: int) -> bytes:
        """Lines from that microsecond on, as far as they are in the last two files."""
        content = b"".join(file.read_bytes() for file in segments(self._folder)[-2:])
        lines = [line for line in content.splitlines(keepends=True) if line[:1].isdigit() and line.endswith(b"\n")]
        return b"".join(lines[bisect_left(lines, since, key=_time_of) :])

    def close(self) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def _continue_file(self) -> None:
        """Continues the file of an earlier run."""
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        last = max((_number(file) for file in segments(self._folder)), default=0)
        self._begin(max(last, 1))

    def _begin(self, number: int) -> None:
        self.close()
        path = self._folder / f"ring-{number:0{_DIGITS}d}.rec"
        self._file = open_to_append(path)
        self._number = number
        self._size = os.fstat(self._file).st_size
        # A new file, or one with an incomplete line after a kill or a full disk.
        self._size += append_all(self._file, b"\n" + self._header if self._size else self._header)
        for old in segments(self._folder)[:-SEGMENTS]:
            old.unlink(missing_ok=True)


class Incident:
    """The current incident's file. Every method may raise OSError."""

    def __init__(self, folder: Path, name: str, before: bytes, header: str) -> None:
        self.name = name
        self._file = open_to_append(path_of(folder, name))
        append_all(self._file, header.encode() + before)
        for old in listed(folder)[:-MAX_INCIDENTS]:
            path_of(folder, old).unlink(missing_ok=True)

    def append(self, data: bytes) -> None:
        append_all(self._file, data)

    def end(self) -> None:
        """Syncs the file: a doubtful outcome is often followed by the power switch."""
        os.fdatasync(self._file)
        self.close()

    def close(self) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file = -1


def path_of(folder: Path, incident: str) -> Path:
    return folder / f"incident-{incident}.rec"


def listed(folder: Path) -> list[str]:
    """Names of the incidents, oldest first: each begins with its time."""
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
    """Files of one line. `limit`: bytes of the ring; `floor`: bytes that stay free on that disk for others."""

    folder: Path
    limit: int
    floor: int
    about: Mapping[str, str]


class LineFiles:
    """The files of one line; used only by the writing thread."""

    def __init__(self, place: RecordingPlace) -> None:
        self._place = place
        self._header = header(place.about)
        self._ring = RecordingRing(place.folder, place.limit, self._header)
        self._incident: Incident | None = None
        self._trouble = ""

    def write(self, events: list[LineEvent], incident: str) -> None:
        """`incident`: the current one, empty without one."""
        try:
            self._free_room()
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

    def _free_room(self) -> None:
        self._place.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = os.statvfs(self._place.folder)
        if found.f_bavail * found.f_frsize < self._place.floor:
            raise OSError(0, "the disk is nearly full")

    def _log_change(self, trouble: str) -> None:
        """Logs the begin and the end of a fault."""
        if trouble == self._trouble:
            return
        self._trouble = trouble
        if trouble:
            log.warning("recording.stopped", folder=str(self._place.folder), reason=trouble)
        else:
            log.info("recording.goes_on", folder=str(self._place.folder))


class LineRecording:
    """One line's recorder, and the timer that writes its events. Lives on the event loop."""

    def __init__(self, place: RecordingPlace, thread: ThreadPoolExecutor) -> None:
        self.recorder = Recorder(self._on_event)
        self._files = LineFiles(place)
        self._thread = thread
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        self._writing: Future[None] | None = None

    def close(self) -> None:
        """Passes the rest to the thread, whose owner waits for it."""
        self._disarm()
        self._thread.submit(self._files.write, self.recorder.drain(), self.recorder.under_way)
        self._thread.submit(self._files.close)

    def _on_event(self, urgent: bool) -> None:
        if urgent:
            self._disarm()
        if self._timer is None:
            self._timer = self._loop.call_later(0.0 if urgent else EVERY, self._write)

    def _write(self) -> None:
        self._timer = None
        if self._writing is not None and not self._writing.done():  # a slow disk
            self._timer = self._loop.call_later(EVERY, self._write)
            return
        events, incident = self.recorder.drain(), self.recorder.under_way
        self._writing = self._thread.submit(self._files.write, events, incident)
        if incident:  # its file must end even without further events
            self._timer = self._loop.call_later(EVERY, self._write)

    def _disarm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


class Recordings:
    """Recordings of all lines of this process."""

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
