"""The command line of `python -m bench.fleet`."""

import sys

from bench.fleet.plan import main

sys.exit(main())
