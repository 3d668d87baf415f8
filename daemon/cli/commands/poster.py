from __future__ import annotations

from pathlib import Path
from typing import cast, get_args

import click

from common.language import tr
from daemon.cli.options import described
from daemon.paper.poster import PaperSize, poster


@click.command(
    "poster",
    **described(
        tr("The sign that the law wants at each till, as a PDF: EXIGEZ LA FACTURE ELECTRONIQUE CERTIFIEE."),
        "mcfd poster poster.pdf",
        "mcfd poster --size A5 poster.pdf",
    ),
)
@click.option(
    "--size", type=click.Choice(get_args(PaperSize)), default="A4", show_default=True, help=tr("Of the paper.")
)
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
def command(file: Path, size: str) -> None:
    file.write_bytes(poster(cast("PaperSize", size)))
