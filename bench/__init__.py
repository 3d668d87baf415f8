"""`python -m bench`: what the service costs beside the line, as ratios to baselines measured in the same run.

Each row's measure and limit: `LIMITS` in bench/figures.py. The processes are those of `tests/support/shop.py`.
"""

import os
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "bench" / "results"

sys.path.append(str(ROOT / "tests"))


def keep_byte_code() -> None:
    """What is started from here on finds its modules compiled, as on a box, where the package has done that. A workplace that
    asks Python not to (PYTHONDONTWRITEBYTECODE) has every start compile three hundred of them."""
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
