"""Recordings on disk: a ring that keeps its size, incidents with what was before and after them, and disks that are full."""

import asyncio
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from support.processor import waited
from support.shop import wait_for

from bridge.recording.recording import RECEIVED, SENT, LineEvent, read
from daemon.recording.writer import MAX_INCIDENTS, LineFiles, RecordingPlace, Recordings, listed, path_of, segments

ABOUT = {"nim": "EL02000015-1"}
MINUTE = 60_000_000


def place(folder: Path, limit: int = 80_000, floor: int = 0) -> RecordingPlace:
    return RecordingPlace(folder, limit, floor, ABOUT)


def events(count: int, begin: int = 0, every: int = 1000) -> list[LineEvent]:
    return [
        LineEvent(begin + at * every, SENT if at % 2 else RECEIVED, b"\x01frame %d\x03" % at) for at in range(count)
    ]


def ring_text(folder: Path) -> str:
    return "".join(file.read_text() for file in segments(folder))


def test_the_ring_keeps_the_last_and_never_grows_beyond_its_size(tmp_path) -> None:
    """Whatever goes through it."""
    files = LineFiles(place(tmp_path, limit=20_000))
    for turn in range(100):
        files.write(events(20, begin=turn * 20_000), "")
        assert sum(file.stat().st_size for file in segments(tmp_path)) <= 20_000
    files.close()
    found = read(ring_text(tmp_path))
    assert found.problems == ()
    assert found.events[-1].at == 99 * 20_000 + 19_000
    assert len(found.events) > 20_000 * 7 / 8 / 40


def test_a_restart_goes_on_after_a_line_that_a_kill_cut_short(tmp_path) -> None:
    """The cut line is reported, all others are there."""
    files = LineFiles(place(tmp_path))
    files.write(events(3), "")
    files.close()
    with segments(tmp_path)[-1].open("a") as file:
        file.write("4000 > half a li")
    again = LineFiles(place(tmp_path))
    again.write(events(2, begin=5000), "")
    again.close()
    found = read(ring_text(tmp_path))
    assert [event.at for event in found.events] == [0, 1000, 2000, 4000, 5000, 6000]
    assert found.problems == ()
    assert len(segments(tmp_path)) == 1


def test_an_incident_has_the_minute_before_it_and_what_follows(tmp_path) -> None:
    """Of an hour of traffic, from a minute before the moment; and it goes on until its minute is over."""
    files = LineFiles(place(tmp_path, limit=8_000_000))
    files.write(events(3600, every=1_000_000), "")
    at = 3600 * 1_000_000
    files.write(events(5, begin=at), "A")
    files.write(events(5, begin=at + MINUTE // 2), "A")
    files.write(events(5, begin=at + 2 * MINUTE), "")
    found = read(path_of(tmp_path, "A").read_text())
    assert found.about["nim"] == "EL02000015-1"
    assert found.events[0].at == at - MINUTE
    assert found.events[-1].at == at + MINUTE // 2 + 4000
    assert len(found.events) == 60 + 5 + 5
    files.close()


def test_the_last_fifty_incidents_are_kept(tmp_path) -> None:
    """The oldest go. Customers are in them: the files are for their owner alone."""
    folder = tmp_path / "line"
    files = LineFiles(place(folder))
    for number in range(MAX_INCIDENTS + 3):
        files.write(events(1), f"20261121T{number:06d}Z")
    files.close()
    assert len(listed(folder)) == MAX_INCIDENTS
    assert listed(folder)[0] == "20261121T000003Z"
    assert {oct(path.stat().st_mode & 0o777) for path in folder.iterdir()} == {"0o600"}
    assert oct(folder.stat().st_mode & 0o777) == "0o700"


def test_room_that_others_need_is_left_to_them(tmp_path) -> None:
    """The recording ends while the ledger still has its reserve, and goes on when there is room again."""
    files = LineFiles(place(tmp_path, floor=1 << 60))
    files.write(events(3), "A")
    assert list(tmp_path.iterdir()) == []
    files._place = place(tmp_path)
    files.write(events(3), "")
    files.close()
    assert len(read(ring_text(tmp_path)).events) == 3


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_disk_that_takes_nothing_is_no_error(tmp_path) -> None:
    """ENOSPC in the middle of a write: logged once, tried again at the next one, and nothing is raised."""
    (tmp_path / "ring-00000001.rec").symlink_to("/dev/full")
    files = LineFiles(place(tmp_path))
    files.write(events(3), "")
    files.write(events(3), "")
    (tmp_path / "ring-00000001.rec").unlink()
    files.write(events(3, begin=9000), "")
    files.close()
    assert [event.at for event in read(ring_text(tmp_path)).events] == [9000, 10000, 11000]


LOSER = """
import asyncio, sys, time
from pathlib import Path
from daemon.recording.writer import RecordingPlace, Recordings

async def main():
    recorder = Recordings().open(RecordingPlace(Path(sys.argv[1]), 8_000_000, 0, {}))
    while True:
        recorder.sent(b"%d" % time.time_ns())
        print(time.time_ns(), flush=True)
        await asyncio.sleep(0.01)

asyncio.run(main())
"""


def test_a_kill_loses_at_most_a_second(tmp_path) -> None:
    """kill -9 in the middle of steady traffic: the last event on the disk is less than a second old, but for what a busy machine takes."""
    with subprocess.Popen([sys.executable, "-c", LOSER, str(tmp_path)], stdout=subprocess.PIPE) as process:
        assert process.stdout
        wait_for(lambda: segments(tmp_path), "the first second")
        time.sleep(1.3)
        taken = waited(process.pid)
        os.kill(process.pid, 9)
        noted = [int(line) for line in process.stdout.read().split(b"\n")[:-1]]
    last = int(read(ring_text(tmp_path)).events[-1].data)
    assert 0 <= noted[-1] - last < (1 + taken) * 1e9


async def test_what_is_odd_is_written_at_once_and_the_rest_within_the_second(tmp_path) -> None:
    """Nobody waits for it: the recorder's own calls return before anything is on the disk."""
    recordings = Recordings()
    recorder = recordings.open(place(tmp_path / "line"))
    recorder.sent(b"first")
    assert not segments(tmp_path / "line")
    await asyncio.to_thread(wait_for, lambda: "first" in ring_text(tmp_path / "line"), "the first second")
    name = recorder.note_incident("retry: silence")
    await asyncio.to_thread(wait_for, path_of(tmp_path / "line", name).exists, "the incident")
    recorder.sent(b"last")
    await recordings.close()
    found = read(path_of(tmp_path / "line", name).read_text())
    assert [event.data for event in found.events] == [b"first", b"retry: silence", b"last"]
