"""`python -m bench`: the service's cost beside the line, as ratios to baselines measured in the same run. Measures and
limits are `LIMITS` in bench/figures.py; the processes are those of `tests/support/shop.py`."""

import os
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "bench" / "results"

sys.path.append(str(ROOT / "tests"))


def keep_byte_code() -> None:
    """Makes child processes use compiled modules, as on a box, where the package has compiled them. With
    PYTHONDONTWRITEBYTECODE every start would compile three hundred modules."""
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
