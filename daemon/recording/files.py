"""A recording on disk, to be shown or sent."""

from __future__ import annotations

from pathlib import Path

import msgspec

from bridge.recording.masking import masked
from bridge.recording.recording import Recording, header, read, written
from daemon.recording.ring import listed, path_of, segments


def read_ring(folder: Path) -> Recording:
    """All that is left of the ring. OSError."""
    return read("".join(file.read_text("utf-8", "replace") for file in segments(folder)))


def read_incident(folder: Path, name: str) -> Recording:
    """OSError, FileNotFoundError among them."""
    if name not in listed(folder):  # nor is it a path of somewhere else
        raise FileNotFoundError(name)
    return read(path_of(folder, name).read_text("utf-8", "replace"))


def since(recording: Recording, at: int) -> Recording:
    """What happened from that microsecond on."""
    kept = [(event, line) for event, line in zip(recording.events, recording.lines, strict=True) if event.at >= at]
    return msgspec.structs.replace(
        recording, events=tuple(event for event, _ in kept), lines=tuple(line for _, line in kept)
    )


def without_people(recording: Recording) -> Recording:
    return msgspec.structs.replace(
        recording, about={**recording.about, "masked": "yes"}, events=tuple(masked(recording.events))
    )


def as_file(recording: Recording) -> str:
    """In the form that `mcf-simulator --replay` takes."""
    about = {key: value for key, value in recording.about.items() if key != "format"}
    return header(about) + written(recording.events)
