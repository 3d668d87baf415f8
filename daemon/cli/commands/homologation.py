"""The dossier of homologation: its documents, and the test cases on the connected machine."""

from pathlib import Path

import click
import httpx
import msgspec

from common.files import write_whole
from common.language import tr
from common.wire.instants import now_millis
from daemon.cli.options import explained
from daemon.cli.output import FOUND_WRONG, Failure, require_terminal, say, writing
from daemon.homologation.cases import CannotPlay, CasePlayer, read_cases
from daemon.homologation.dossier import PAPERS, RESULTS, STATES, NoDocumentation, write_cases, write_dossier

command = click.Group("homologation")
FOLDER = click.option(
    "--into",
    "folder",
    type=click.Path(file_okay=False, path_type=Path),
    required=True,
    help=tr("The folder of the dossier; it is made."),
)
ANSWER_SECONDS = 100.0


@command.command(
    "make",
    **explained(
        "Write the dossier as PDFs in French: table of conformity, test cases with the results of `run`, user's manual, control manual, brochure, checksums.",
        "mcfd homologation make --into dossier",
        "mcfd homologation make --into dossier --installer mcfd_0.23.0_amd64.deb",
    ),
)
@FOLDER
@click.option(
    "--installer",
    "installers",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    multiple=True,
    help=tr("A file to put beside them; may be repeated."),
)
def make(folder: Path, installers: tuple[Path, ...]) -> None:
    try:
        with writing(folder):
            for file in write_dossier(folder, installers):
                say(str(file))
    except NoDocumentation as error:
        raise Failure(error) from None


@command.command(
    "run",
    **explained(
        "Play the test cases through the HTTP API as a till would, on a machine in test mode or on the sandbox. Exit 1 when one does not come as expected.",
        "MCFD_KEY=ak_test_… mcfd homologation run --url http://127.0.0.1:8480/v1/mcf/EL02000015-1 --into dossier",
    ),
)
@click.option("--url", required=True, help=tr("Address of the machine, as tills have it: …/v1/mcf/NIM"))
@click.option("--key", envvar="MCFD_KEY", default="", help=tr("A key of role manager; better in MCFD_KEY."))
@click.option(
    "--ca",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help=tr("Certificate of the box's authority (mcfd tls export-ca)."),
)
@click.option("--papers/--no-papers", default=True, show_default=True, help=tr("Keep each document as PDF."))
@click.option(
    "--machine-in-test-mode",
    "is_test_mode",
    is_flag=True,
    help=tr("The machine is in test mode, and has not certified anything yet that shows it."),
)
@FOLDER
def run(  # noqa: PLR0917  click names them
    url: str, key: str, ca: Path | None, papers: bool, is_test_mode: bool, folder: Path
) -> int:
    if not key:
        require_terminal("--key")
        key = click.prompt(tr("key"), hide_input=True)
    with writing(folder):
        (folder / PAPERS).mkdir(parents=True, exist_ok=True)
    headers = {"Authorization": f"Bearer {key}", "Accept-Language": "fr"}
    verify = str(ca) if ca else True
    results = []
    try:
        with httpx.Client(
            base_url=f"{url.rstrip('/')}/", headers=headers, timeout=ANSWER_SECONDS, verify=verify
        ) as client:
            player = CasePlayer(
                client,
                f"H{now_millis()}",
                folder / PAPERS if papers else None,
                is_test_mode=is_test_mode,
            )
            for result in player.play(read_cases()):
                results.append(result)
                say(f"{result.id:14} {STATES[result.state]}  {result.detail}".rstrip())
    except CannotPlay as error:
        raise Failure(error) from None
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise Failure("{url}: {why}", url=url, why=str(error) or type(error).__name__) from None
    finally:
        if results:
            with writing(folder):
                write_whole(folder / RESULTS, msgspec.json.format(msgspec.json.encode(results)), 0o644)
                write_cases(folder)
    return FOUND_WRONG if any(result.state == "failed" for result in results) else 0
