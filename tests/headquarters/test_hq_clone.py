"""Findings by what boxes say of themselves: a card that was copied, and a sale that waits for too long."""

import msgspec
import pytest
from support.hq.paper_box import PaperBox
from support.hq.store import NOW, presence_word

from common.wire.presence import Presence
from daemon.core.clock import HOUR, millis_text
from headquarters.core.checks import facts_of
from headquarters.core.lateness import BootSpan, two_at_once, with_presence
from headquarters.core.wording import sentence

MINUTE = 60_000


class Heard:
    """Presences of one box, by their minute and the start that says them; `behind`: its clock, in minutes."""

    def __init__(self, store) -> None:
        self.store = store
        self.box = PaperBox()
        store.register.add(self.box.nim, self.box.key.public, now=NOW)

    def say(self, minute: int, boot: str, behind: int = 0, stream: bool = False):
        at = NOW + minute * MINUTE
        presence = self.box.presence(at - behind * MINUTE, boot=boot)
        word = presence_word(self.box, presence)
        if stream:
            word = msgspec.structs.replace(word, heard_at=at, quiet=-1)
        self.store.presences.store([word], now=at)

    @property
    def findings(self):
        return [one.facts for one in self.store.findings.listed(is_open=True) if one.kind == "clone"]


@pytest.fixture
def box(store):
    return Heard(store)


def test_a_box_that_restarts(box):
    """Each start after the other, also in a hurry, and with the last word of the one before a little late: one box."""
    for minute, boot in ((0, "a"), (5, "a"), (6, "b"), (6, "a"), (7, "c"), (12, "c"), (13, "d"), (14, "e"), (15, "f")):
        box.say(minute, boot)
    assert box.findings == []


@pytest.mark.parametrize("behind", [0, 30, 3000, -3000])
def test_a_copied_card(box, behind):
    """Both speak in turn, by any clock: a finding within two words of each, which ends once the copy was silent for an hour."""
    for minute in (0, 5, 10):
        box.say(minute, "a")
    box.say(12, "copy", behind)
    assert box.findings == []
    box.say(15, "a")
    assert box.findings == [{"first": "a", "second": "copy"}]
    box.say(17, "copy", behind)
    box.say(18, "again")
    box.say(20, "copy", behind)
    assert len(box.findings) == 1
    for minute in range(23, 90, 5):
        box.say(minute, "again")
    assert box.findings == []


def test_the_right_one_is_the_later(box):
    """The copy that lay in a drawer for days and is switched on: seen with the next words."""
    box.say(0, "a")
    for minute in (5000, 5005, 5010):
        box.say(minute, "b")
    box.say(5012, "a")
    box.say(5015, "b")
    assert len(box.findings) == 1


def test_words_that_have_waited(box):
    """What comes out of the stream late says nothing of who is there now."""
    box.say(0, "a")
    box.say(5, "b")
    box.say(6, "a", stream=True)
    box.say(10, "b")
    assert box.findings == []


def test_what_is_remembered():
    """Of a machine that starts again and again, the last four starts."""
    boots: list[BootSpan] = []
    for number in range(100):
        boots = with_presence(boots, f"{number}", number)
    assert [one.boot for one in boots] == ["96", "97", "98", "99"]
    assert two_at_once(boots, 99) is None


def test_words():
    facts = {"first": "0000000a", "second": "0000000b"}
    assert "0000000a and 0000000b" in sentence("clone", facts, "en")
    assert "copiée" in sentence("clone", facts, "fr")


@pytest.mark.parametrize(("age", "hours"), [(0, None), (24, None), (39.99, None), (40, 40), (47.5, 47)])
def test_a_sale_that_waits_for_forty_hours_is_a_finding(age: float, hours: int | None) -> None:
    """By the box's own clock, whatever headquarters' says."""
    presence = Presence(
        type="bf.mcfd.presence.v1",
        nim="EL02000015-1",
        at=millis_text(NOW),
        ledger="abd1",
        boot="5eed0001",
        version="1.0.0",
        key="k",
        sold=millis_text(NOW - round(age * HOUR)) if age else "",
    )
    facts = list(facts_of(presence, at=NOW, now=NOW + 60_000, newest=""))
    assert [(fact.kind, fact.facts) for fact in facts] == ([] if hours is None else [("deferred", {"hours": hours})])
