"""What the tests of the packages begin with, made beforehand: Debian trees, packages, wheels. CI starts it before anything else, beside the
linters; a process that comes earlier makes what is missing, or waits for what is being made.

    PYTHONPATH=tests python -m support.box.prepare
"""

import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from support.box.debian import need_debian, postgresql, prepared_upgrade
from support.box.package import ARCHITECTURES, built, built_headquarters, built_twice, lintian_output, own_arch
from support.box.trees import BOOKWORM, SID, TRIXIE, base

AT_A_TIME = 2


def main() -> int:
    need_debian()
    jobs: dict[str, Callable[[], object]] = {
        TRIXIE: lambda: base(TRIXIE),
        "package": built,
        BOOKWORM: lambda: base(BOOKWORM),
        "headquarters": built_headquarters,
        "upgrade": lambda: prepared_upgrade(TRIXIE),
        **{f"package for {arch}": lambda arch=arch: built(arch) for arch in ARCHITECTURES if arch != own_arch()},  # type: ignore[misc]
        "package, again": lambda: built_twice(own_arch()),
        "lintian": lambda: lintian_output(built()),
        "PostgreSQL": lambda: postgresql(TRIXIE),
        SID: lambda: base(SID),
    }
    with ThreadPoolExecutor(AT_A_TIME) as pool:
        return 0 if all(pool.map(lambda name: build(name, jobs[name]), jobs)) else 1


def build(name: str, make: Callable[[], object]) -> bool:
    """Printed on standard output. What fails here fails again in the test that wants it, and is explained there."""
    began = time.monotonic()
    try:
        make()
    except BaseException as error:  # noqa: BLE001  pytest's own ends, too, are none of `Exception`
        result = f"could not be made: {error}"
    else:
        result = "ready"
    sys.stdout.write(f"{name}: {result}, {time.monotonic() - began:.1f} s\n")
    sys.stdout.flush()
    return result == "ready"


if __name__ == "__main__":
    sys.exit(main())
