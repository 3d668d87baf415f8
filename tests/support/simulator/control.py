"""Orders to a simulator that runs."""

import json
import socket
from pathlib import Path
from typing import Any

ANSWER_SECONDS = 60.0


def ordered(control: Path, do: str, **fields: Any) -> dict[str, Any]:
    """One order to the simulator with that control socket, and its answer (docs/simulator.md)."""
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(ANSWER_SECONDS)
        client.connect(str(control))
        client.sendall(json.dumps({"do": do, **fields}).encode() + b"\n")
        with client.makefile("rb") as lines:
            for line in lines:
                answer: dict[str, Any] = json.loads(line)
                if "ok" in answer:
                    assert answer["ok"], answer
                    return answer
    raise AssertionError("the simulator closed its control socket")
