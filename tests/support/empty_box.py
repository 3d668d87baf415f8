"""A box that knows nothing yet: `mcfd setup --page` runs instead of a daemon, and becomes it."""

import re
from datetime import UTC, datetime, tzinfo
from pathlib import Path

import httpx
from support.shop import Machine, Shop, start_program, wait_for

from daemon.app.page import first_start


class EmptyBox(Shop):
    """With one machine. The configuration is the one that the page writes; `link` is what the box shows, with the code in it."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, machines=(Machine(folder),))
        self.link = ""

    def _write_config(self) -> None:
        """The page alone."""

    def set_up_in_page(self, address: str = "127.0.0.1") -> None:
        """`address` is what `--page` names."""
        for machine in self.machines:
            machine.start()
        where = ("--config", str(self.config_file), "--ledger", str(self.ledger), "--http-port", str(self.port))
        ports = [word for machine in self.machines for word in ("--port", str(machine.link))]
        environ = {**self.environ, "LC_ALL": "en_US.UTF-8"}
        self.log_file.touch()
        self._process = start_program("mcfd", ["setup", "--page", address, *where, *ports], self.log_file, environ)
        self.link = wait_for(self._output, "the link")

    def _output(self) -> str:
        found = re.search(r"https?://\S+code=\S+", self.log_file.read_text())
        return found.group() if found and self._answers_at_all() else ""

    def _answers_at_all(self) -> bool:
        try:
            return self.http.get("/ui/setup/code").status_code in {200, 308}
        except httpx.HTTPError:
            return False


def set_clock_back(right: str) -> None:
    """To 1970, as on a box without a battery, until there is a file `right`."""

    class Clock(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> datetime:
            return datetime.now(tz) if Path(right).exists() else datetime(1970, 1, 2, tzinfo=UTC)

    first_start.datetime = Clock  # type: ignore[attr-defined]
