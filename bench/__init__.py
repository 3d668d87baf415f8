"""`python -m bench`: what the service costs beside the line, as ratios to baselines measured in the same run.

docs/performance.md says how each row is measured. The processes are those of `tests/support/shop.py`.
"""

import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "bench" / "results"

sys.path.append(str(ROOT / "tests"))
