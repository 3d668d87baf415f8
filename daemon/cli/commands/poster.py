from __future__ import annotations

from typing import cast, get_args

import click

from common.language import tr
from daemon.cli.options import described
from daemon.paper.pdf import PaperSize, poster


@click.command(
    "poster",
    **described(
        tr("The sign that the law wants at each till, as a PDF: EXIGEZ LA FACTURE ELECTRONIQUE CERTIFIEE."),
        "mcfd poster > poster.pdf",
        "mcfd poster --size A5 > poster.pdf",
    ),
)
@click.option(
    "--size", type=click.Choice(get_args(PaperSize)), default="A4", show_default=True, help=tr("Of the paper.")
)
def command(size: str) -> None:
    click.echo(poster(cast("PaperSize", size)), nl=False)
