"""A certification goes through few hands (docs/architecture.md, "One certification")."""

import json
import os
import subprocess
import sys
from pathlib import Path

from support.sale_path import OUTPUT, ROOT

HANDS, HAND_MODULES, FUNCTIONS, MODULES = 60, 32, 377, 86


def test_a_sale_goes_through_few_hands(tmp_path: Path) -> None:
    """Of a real certification: what waits, or moves it on; and everything that runs for it."""
    environ = {**os.environ, "PYTHONPATH": str(ROOT / "tests")}
    command = [sys.executable, "-m", "support.sale_path", str(tmp_path)]
    done = subprocess.run(command, env=environ, cwd=ROOT, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    found: dict[str, bool] = json.loads((tmp_path / OUTPUT).read_text())
    hands = [name for name, is_hand in found.items() if is_hand]
    result = "\n".join(
        [*hands, f"{len(hands)} hands in {len(_modules(hands))} modules, {len(found)} in {len(_modules(found))}"]
    )
    assert len(hands) <= HANDS, result
    assert len(_modules(hands)) <= HAND_MODULES, result
    assert len(found) <= FUNCTIONS, result
    assert len(_modules(found)) <= MODULES, result


def _modules(functions: list[str] | dict[str, bool]) -> set[str]:
    return {name.partition(":")[0] for name in functions}
