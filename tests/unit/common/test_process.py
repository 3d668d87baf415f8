"""The event loop of a service."""

import subprocess
import sys

FIRST_DECODINGS = """
import sys, threading
from typing import Any

import msgspec
from common import process

THREADS = 8
sys.setswitchinterval(1e-6)
outer = []
for number in range(40):
    inner = msgspec.defstruct(f"Inner{number}", [("a", "int | None"), ("b", "dict[str, int]")])
    middle = msgspec.defstruct(f"Middle{number}", [("a", inner), ("b", tuple[inner, ...])])
    outer.append(msgspec.defstruct(f"Outer{number}", [("a", middle), ("b", list[middle])]))
content = {"a": None, "b": {"x": 1}}
content = {"a": content, "b": [content]}
content = {"a": content, "b": [content]}
together = threading.Barrier(THREADS)

def decode() -> None:
    for each in outer:
        together.wait()
        msgspec.convert(content, each)

async def service() -> None:
    threads = [threading.Thread(target=decode) for _ in range(THREADS)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()

"""


def test_threads_decode_a_struct_for_the_first_time() -> None:
    """All at the same moment, in a service: without its preparation the process crashes (msgspec 0.22)."""
    script = f"{FIRST_DECODINGS}process.run(service())"
    done = subprocess.run([sys.executable, "-c", script], timeout=100, check=False, capture_output=True)
    assert done.returncode == 0, done.stderr.decode()
