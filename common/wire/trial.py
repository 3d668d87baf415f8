"""A message that says nothing: who sets up a box wants to know before the first Z whether address, certificate and key are right.

CloudEvents like a closure, signed like one, and never kept: headquarters checks the signature and answers with a receipt."""

from __future__ import annotations

from typing import Literal

import msgspec

from common.wire.closure import Nim, Shape, Text
from common.wire.errors import BadEvent, decoded

TYPE = "bf.mcfd.test.v1"
MOST_BYTES = 2048


class TrialData(Shape, frozen=True):
    nim: Nim
    box: Text = ""
    key_id: Text = ""
    """Of the key that signs first."""


class Trial(Shape, frozen=True, kw_only=True):
    specversion: Literal["1.0"] = "1.0"
    id: Text
    source: Text
    type: Literal["bf.mcfd.test.v1"] = "bf.mcfd.test.v1"
    subject: Text = "test"
    time: Text
    datacontenttype: Literal["application/json"] = "application/json"
    data: TrialData


def encode_trial(trial: Trial) -> bytes:
    return msgspec.json.encode(trial)


def read_trial(content: bytes) -> Trial | None:
    """None when it is something else."""
    if len(content) > MOST_BYTES or TYPE.encode() not in content:
        return None
    try:
        return decoded(content, Trial)
    except BadEvent:
        return None
