"""A shop whose machine has a spare beside it, as real processes."""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from support.shop import IFU, NIM, Machine, Shop, wait_for

SPARE = "EL02000099-1"


class PairShop(Shop):
    """`spare` is beside the one machine of the shop."""

    def __init__(self, folder: Path, ifu: str = IFU) -> None:
        super().__init__(folder, machines=(Machine(folder),))
        self.spare = Machine(folder, SPARE, ifu)
        self.more_config = f'[[machine]]\nnim = "{SPARE}"\nport = "{self.spare.link}"\nspare_for = "{NIM}"\n'

    def configure(self, company: dict[str, Any]) -> None:
        """From the next start on."""
        self._config = {**self._config, "company": company}

    @property
    def first(self) -> Machine:
        return self.machines[0]

    def take_over(self) -> None:
        self.mcfd("machine", "take-over", NIM, "--reason", "does not start", check=True)

    def take_back(self) -> None:
        self.mcfd("machine", "take-back", NIM, "--reason", "repaired", check=True)

    def connected(self) -> set[str]:
        machines = self.http.get("/health/ready").json()["machines"]
        return {machine["nim"] for machine in machines if machine["connected"]}


@contextlib.contextmanager
def paired(folder: Path, ifu: str = IFU) -> Iterator[PairShop]:
    with PairShop(folder, ifu) as shop:
        shop.spare.start()
        try:
            yield shop
        finally:
            shop.spare.kill()


@contextlib.contextmanager
def both(folder: Path, ifu: str = IFU) -> Iterator[PairShop]:
    """Running, and both machines are there."""
    with paired(folder, ifu) as shop:
        shop.start()
        wait_for(lambda: shop.connected() == {NIM, SPARE}, "both machines")
        yield shop
