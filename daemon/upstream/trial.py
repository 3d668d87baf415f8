"""The message of `mcfd upstream test`: signed like a closure, and says nothing (`common.wire.trial`)."""

from __future__ import annotations

from common.wire.trial import Trial, TrialData, encode_trial


def compose(event_id: str, nim: str, *, at: str, box: str, key_id: str) -> bytes:
    """`at` in RFC 3339; `box` and `key_id` as in a closure's event."""
    data = TrialData(nim, box, key_id)
    return encode_trial(Trial(id=event_id, source=f"/mcf/{nim}", time=at, data=data))
