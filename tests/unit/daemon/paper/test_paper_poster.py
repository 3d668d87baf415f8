"""The sign at each till (arrêté 2025-0049, art. 6 c): a PDF of one page that every reader opens."""

import re
import shutil
import subprocess

import pytest
from click.testing import CliRunner

from daemon.cli import root
from daemon.paper.poster import SIZES, WIDTHS, poster


@pytest.mark.parametrize("size", SIZES)
def test_the_poster_says_the_words_of_the_law(size, tmp_path):
    """As large as its paper, every object where the table says, no letter beyond the margin; a reader finds the words."""
    content = poster(size)
    width, height = SIZES[size]
    assert f"/MediaBox [0 0 {width} {height}]".encode() in content
    places = [int(found) for found in re.findall(rb"(\d{10}) 00000 n", content)]
    assert [content[at:].startswith(f"{number} 0 obj".encode()) for number, at in enumerate(places, 1)] == [True] * 5
    start = int(re.search(rb"startxref\n(\d+)", content)[1])
    assert content[start:].startswith(b"xref")
    letters = int(re.search(rb"/F (\d+) Tf", content)[1])
    lines = re.findall(rb"1 0 0 1 (\d+) (\d+) Tm \(([^)]+)\) Tj", content)
    assert b" ".join(line for *_, line in lines) == b"EXIGEZ LA FACTURE ELECTRONIQUE CERTIFIEE"
    for left, up, line in lines:
        assert int(left) + sum(WIDTHS[char] for char in line.decode()) * letters / 1000 < width - 20
        assert 20 < int(up) < height - 20 - letters * 0.7
    if shutil.which("pdftotext"):
        (tmp_path / "poster.pdf").write_bytes(content)
        told = subprocess.run(["pdftotext", tmp_path / "poster.pdf", "-"], capture_output=True, text=True, check=True)
        assert told.stdout.split() == ["EXIGEZ", "LA", "FACTURE", "ELECTRONIQUE", "CERTIFIEE"]


@pytest.mark.parametrize(("options", "size"), [([], "A4"), (["--size", "A5"], "A5")])
def test_the_command_prints_it(options, size):
    """`mcfd poster > poster.pdf`, A4 unless said otherwise."""
    done = CliRunner().invoke(root, ["poster", *options])
    assert (done.exit_code, done.stdout_bytes) == (0, poster(size))
