"""`mcfd-hq findings` and `mcfd-hq refused`: what a person wants to know without the page."""

from __future__ import annotations

import click

from exchange.instants import instant_text
from headquarters.app.settings import Settings
from headquarters.cli.shared import configured, opened
from headquarters.core.wording import KIND, sentence


@click.command()
@click.option("--all", "everything", is_flag=True, help="Also what is solved.")
@configured
def findings(settings: Settings, everything: bool) -> None:
    """What is not as it has to be, newest first."""
    language = settings.reports.language
    with opened(settings) as store:
        for one in store.findings.listed(is_open=None if everything else True):
            words = (KIND[language][one.kind], one.nim, sentence(one.kind, one.facts, language))
            solved = f"✓ {one.solved_by or instant_text(one.solved_at)}" if one.solved_at is not None else ""
            click.echo("\t".join((str(one.id), instant_text(one.found_at), *words, solved)))


@click.command()
@configured
def refused(settings: Settings) -> None:
    """What came and was not taken: how many by day, and the newest samples."""
    with opened(settings) as store:
        for count in store.evidence.counted("2020-01-01"):
            click.echo(f"{count.day}\t{count.via}\t{count.reason}\t{count.count}")
        for sample in store.evidence.samples(20):
            click.echo(f"{instant_text(sample.at)}\t{sample.via}\t{sample.reason}\t{sample.nim}\t{sample.detail}")
