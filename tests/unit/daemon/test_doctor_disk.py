"""`mcfd doctor --disk`: the disk itself, and whether it keeps what it acknowledges."""

import json
import os
from collections.abc import Callable
from contextlib import closing
from itertools import islice
from pathlib import Path

import pytest
from support.cli.command import Command

from daemon.doctor import disk
from daemon.doctor.disk import PLUG_BLOCK, PLUG_FILE, CannotTest, _speed, check_disk_health, judge_blocks, write_blocks
from daemon.doctor.wording import CheckResult

pytestmark = pytest.mark.usefixtures("in_english")

ROUND = 20
"""Blocks of the file in these tests."""
Card = Callable[[bytes], bytes]
"""What a card has of the file after the power cut."""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """On a disk, as far as the test is concerned, and in a box that will be restarted."""
    monkeypatch.setattr(disk, "IN_MEMORY", ())
    monkeypatch.setattr(disk, "MAX_BLOCKS", ROUND)
    return tmp_path


def pulled(folder: Path, blocks: int, card: Card = bytes) -> str:
    """The number that was shown last, when the plug was pulled after so many blocks."""
    with closing(write_blocks(folder)) as written:
        code_word = list(islice(written, blocks))[-1]
        content = (folder / PLUG_FILE).read_bytes()
    assert not (folder / PLUG_FILE).exists()  # ended at the keyboard, it would have tested nothing
    (folder / PLUG_FILE).write_bytes(card(content))
    return code_word


@pytest.fixture
def restarted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[], None]:
    def restart() -> None:
        (tmp_path / "boot").write_text("0" * 32)
        monkeypatch.setattr(disk, "BOOT", tmp_path / "boot")

    return restart


def judged(folder: Path, expected: str, restarted: Callable[[], None]) -> CheckResult:
    restarted()
    return judge_blocks(folder, expected)


@pytest.mark.parametrize("blocks", [1, ROUND - 1, ROUND, ROUND + 1, 3 * ROUND + 7])
def test_an_honest_card_has_kept_everything(folder: Path, restarted: Callable[[], None], blocks: int) -> None:
    """Also once the file is written over; the file is gone when that is known."""
    code_word = pulled(folder, blocks)
    found = judged(folder, f" {code_word.lower()} ", restarted)
    assert (found.state, str(blocks) in found.found) == ("ok", True)
    assert not (folder / PLUG_FILE).exists()


def cut(content: bytes, number: int) -> bytes:
    return content[: -number * PLUG_BLOCK]


def zeroed(content: bytes, place: int) -> bytes:
    return content[: place * PLUG_BLOCK] + bytes(PLUG_BLOCK) + content[(place + 1) * PLUG_BLOCK :]


@pytest.mark.parametrize(
    ("blocks", "card", "lost"),
    [
        (10, lambda content: cut(content, 1), 1),
        (10, lambda content: cut(content, 4), 4),
        (10, lambda content: zeroed(content, 3), 1),
        (10, lambda content: content[:-1], 1),
        (10, lambda _: b"", 10),
        (ROUND, lambda content: zeroed(content, 3), 1),
    ],
)
def test_a_card_that_lost_what_it_acknowledged_is_found(
    folder: Path, restarted: Callable[[], None], *, blocks: int, card: Card, lost: int
) -> None:
    """The last ones, one in the middle, a part of one, all of them. What is left stays to be looked at."""
    found = judged(folder, pulled(folder, blocks, card), restarted)
    assert (found.state, f"{lost} of them" in found.found) == ("fail", True)
    assert (folder / PLUG_FILE).exists()


def test_a_card_that_gives_back_what_was_there_before_is_found(folder: Path, restarted: Callable[[], None]) -> None:
    """Written over and acknowledged, and after the power cut the older block is back: it is whole, and too old."""
    with closing(write_blocks(folder)) as written:
        list(islice(written, ROUND))
        before = (folder / PLUG_FILE).read_bytes()
        code_word = list(islice(written, 5))[-1]
        after = (folder / PLUG_FILE).read_bytes()
    (folder / PLUG_FILE).write_bytes(after[: 3 * PLUG_BLOCK] + before[3 * PLUG_BLOCK :])
    found = judged(folder, code_word, restarted)
    assert (found.state, "2 of them, from 24 on" in found.found) == ("fail", True)


def test_what_was_written_after_the_last_number_that_was_seen_is_no_matter(
    folder: Path, restarted: Callable[[], None]
) -> None:
    """Blocks that were acknowledged and not seen any more, and the one in the middle of which the power went, in the place of an older one."""
    with closing(write_blocks(folder)) as written:
        code_word = list(islice(written, ROUND + 3))[-1]
        list(islice(written, 2))
        content = (folder / PLUG_FILE).read_bytes()
    (folder / PLUG_FILE).write_bytes(zeroed(content, 5))
    assert judged(folder, code_word, restarted).state == "ok"
    (folder / PLUG_FILE).write_bytes(zeroed(content, 6))
    assert judged(folder, code_word, restarted).state == "fail"


def test_a_number_that_cannot_have_been_shown_accuses_no_card(folder: Path, restarted: Callable[[], None]) -> None:
    """A box that was not restarted has tested little: what is read may come from its memory. A file that is gone is a card that lost everything."""
    assert "5 of them, from 1 on" in judged(folder, "5-AB", restarted).found
    pulled(folder, 5)
    for expected in ("", "7", "7-", "abc", "0-AA", "-7-AB", "7-A"):
        with pytest.raises(CannotTest, match="as it was shown"):
            judge_blocks(folder, expected)


def test_a_box_that_was_not_restarted_has_tested_little(folder: Path) -> None:
    assert judge_blocks(folder, pulled(folder, 5)).state == "warn"


def test_nothing_is_tested_in_memory_or_without_room(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disk, "_file_system", lambda _: "tmpfs")
    monkeypatch.setattr(disk, "IN_MEMORY", ("tmpfs",))
    with pytest.raises(CannotTest, match="in memory"):
        next(write_blocks(folder))
    monkeypatch.setattr(disk, "IN_MEMORY", ())
    monkeypatch.setattr(disk, "MAX_BLOCKS", 3)
    with pytest.raises(CannotTest, match="no room"):
        next(write_blocks(folder))
    assert not list(folder.iterdir())


# -- the disk itself ------------------------------------------------------------------------------------------------------


def found(folder: Path, sys: Path) -> dict[str, CheckResult]:
    return {each.check: each for each in check_disk_health(folder, sys)}


@pytest.mark.parametrize(
    ("life", "end", "state", "expected"),
    [
        ("0x01 0x01", "0x01", "ok", "10 %"),
        ("0x02 0x08", "0x01", "warn", "80 %"),
        ("0x0b 0x01", "0x01", "fail", "110 %"),
        ("0x02 0x02", "0x02", "fail", "20 %"),
        ("0x00 0x00", "0x00", "ok", "does not say"),
        ("rubbish", "0x01", "ok", "does not say"),
    ],
)
def test_the_wear_of_an_emmc(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, life: str, end: str, state: str, expected: str
) -> None:
    """As its ext_csd says it, of the whole device where the folder is on a partition."""
    monkeypatch.setenv("PATH", "")
    partition = disk_of(tmp_path) / "mmcblk0p2"
    partition.mkdir()
    (partition / "partition").write_text("2")
    linked(tmp_path, partition)
    device = partition.parent / "device"
    device.mkdir()
    (device / "life_time").write_text(life)
    (device / "pre_eol_info").write_text(end)
    wear = found(tmp_path, tmp_path)["disk_wear"]
    assert (wear.state, expected in wear.found) == (state, True), wear


def disk_of(sys: Path) -> Path:
    disk = sys / "devices" / "mmcblk0"
    disk.mkdir(parents=True)
    return disk


def linked(sys: Path, device: Path) -> None:
    number = sys.stat().st_dev
    (sys / "dev" / "block").mkdir(parents=True)
    (sys / "dev" / "block" / f"{os.major(number)}:{os.minor(number)}").symlink_to(device)


@pytest.mark.parametrize(
    ("answer", "state"),
    [
        ({"smart_status": {"passed": True}, "nvme_smart_health_information_log": {"percentage_used": 3}}, "ok"),
        ({"smart_status": {"passed": True}, "nvme_smart_health_information_log": {"percentage_used": 85}}, "warn"),
        ({"smart_status": {"passed": True}, "ata_smart_attributes": {"table": [{"id": 231, "value": 5}]}}, "warn"),
        ({"smart_status": {"passed": False}}, "fail"),
        ({}, "ok"),
        ("rubbish", "ok"),
    ],
)
def test_the_wear_of_an_ssd(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, answer: object, state: str) -> None:
    """As smartctl says it, where there is one."""
    linked(tmp_path, disk_of(tmp_path))
    result = answer if isinstance(answer, str) else json.dumps(answer)
    program = tmp_path / "bin" / "smartctl"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\necho '{result}'\nexit 4\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:/bin")
    assert found(tmp_path, tmp_path)["disk_wear"].state == state


# -- as a command ---------------------------------------------------------------------------------------------------------


def test_the_command(tmp_path: Path) -> None:
    """Needs no configuration; what does not go together is a wrong use."""
    mcfd = Command(tmp_path)
    answer = json.loads(mcfd.run("doctor", "--disk", str(tmp_path), "--json").stdout)
    assert answer["ok"]
    assert {each["check"] for each in answer["checks"]} == {"disk_sync", "disk_room", "disk_wear"}
    for wrong in (("--pull-the-plug",), ("--disk", str(tmp_path), "--shown", "1-AB")):
        assert mcfd.run("doctor", *wrong).returncode == 2
    lost = mcfd.run("doctor", "--disk", str(tmp_path), "--pull-the-plug", "--shown", "7-AB", "--json")
    assert (lost.returncode, json.loads(lost.stdout)["checks"][0]["check"]) == (1, "disk_honesty")


def test_speed_and_room_of_a_real_folder(tmp_path: Path) -> None:
    results = found(tmp_path, tmp_path)
    assert [each.state for each in results.values()] == ["ok", "ok", "ok"]
    assert "not known" in results["disk_wear"].found
    assert not list(tmp_path.iterdir())
    assert found(tmp_path / "gone", tmp_path)["disk_sync"].state == "fail"


@pytest.mark.parametrize(("seconds", "state"), [(0.001, "ok"), (0.1, "ok"), (0.11, "warn")])
def test_a_slow_disk_is_told(seconds: float, state: str) -> None:
    assert _speed([seconds, seconds, 1.0] if state == "ok" else [seconds] * 3).state == state
