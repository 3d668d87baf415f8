"""`[backup]`: who can open the backups of the whole box."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import msgspec

from daemon.settings.section import Section, key

Recipient = Annotated[str, msgspec.Meta(min_length=1)]


class Backup(Section, frozen=True):
    """With one of the two the nightly backup also holds the whole box, and a stick called MCFD gets it when it is plugged in."""

    recipients: Annotated[
        tuple[Recipient, ...],
        key("Who can open backups of the whole box: public keys `age1…`, as `mcfd backup --new-key` makes them."),
    ] = ()
    passphrase_file: Annotated[
        Path | None,
        key("File with one line, the passphrase that opens them (256 MB at the most); only without `recipients`."),
    ] = None
