"""`make siege`: a real daemon under attack, and a till that goes on certifying (docs/security.md shows the table).

Each attack is a process of its own that runs for a bounded time, alone and then all together, over plain TCP and over TLS.
The processes of the shop are those of `tests/support/shop.py`.
"""

import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "bench" / "results"

sys.path.append(str(ROOT / "tests"))
