"""The nursery of a trial or of the measuring: programs with the mistake in them, or under coverage in the context of the test that
started them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from coverage import Coverage
from mutate import spoiled
from support import nursery

MEASURED = "MCFD_MEASURED"
"""In the environment: the folder for coverage data, with the name of the running test in `test-<pid of pytest>`."""


def measure_children(folder: Path) -> None:
    become = nursery.become
    test = folder / f"test-{os.getppid()}"

    def measured(order: dict[str, Any]) -> None:
        measuring = Coverage(
            data_file=folder / "data", data_suffix=True, config_file=folder / "coveragerc", context=test.read_text()
        )
        leave = os._exit

        def save_and_leave(code: int) -> None:
            measuring.stop()
            measuring.save()
            leave(code)

        os._exit = save_and_leave  # type: ignore[assignment]
        measuring.start()
        become(order)

    nursery.become = measured


if __name__ == "__main__":
    if (mistake := spoiled.asked()) is not None:
        spoiled.spoil_imports(mistake)
    if folder := os.environ.get(MEASURED):
        measure_children(Path(folder))
    nursery.serve()
