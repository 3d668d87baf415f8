"""The package itself, and a Debian that is not running while it is installed, as when an image for a box is made."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from support.debian import Debian, debian, need_debian
from support.package import LIB, TREE, built, built_twice, scratch
from support.tools import need

BYTE_CODE_UNCHECKED = 0b01  # PEP 552: by hash, and not compared with the source
# What dpkg and apt write about their own doings.
DPKGS_OWN = ("/root", "/var/cache", "/var/log", "/var/lib/apt", "/var/lib/dpkg", "/var/lib/systemd/deb-systemd-helper")


@pytest.fixture(scope="module")
def package() -> Path:
    return built()


@pytest.fixture(scope="module")
def unpacked(package: Path) -> Path:
    root = scratch() / "unpacked"
    subprocess.run(["dpkg-deb", "--raw-extract", package, root], check=True)
    return root


def test_two_builders_make_the_same_bytes() -> None:
    """Another directory, umask, time zone, language and hash seed change nothing in the package."""
    one, two = built_twice()
    assert one.name == two.name
    assert one.read_bytes() == two.read_bytes()


def test_nothing_in_it_tells_where_it_was_built(unpacked: Path) -> None:
    """No file names the builder's directory, and byte code is used as it is, since the daemon cannot write any."""
    builders_own = str(scratch()).encode()
    modules = 0
    for path in unpacked.rglob("*"):
        if path.is_file():
            content = path.read_bytes()
            assert builders_own not in content, path
            if path.suffix == ".pyc":
                modules += 1
                assert content[4] == BYTE_CODE_UNCHECKED, path
    assert modules > 500


def test_what_dpkg_is_told(unpacked: Path) -> None:
    """It fits Debian 12's Python and no other, and the operator's own configuration is none of dpkg's."""
    control = (unpacked / "DEBIAN/control").read_text()
    assert "python3 (>= 3.11), python3 (<< 3.12)" in control
    assert (unpacked / "DEBIAN/conffiles").read_text() == "/etc/mcfd/mcfd.toml.example\n"


def test_what_only_builds_or_tests_is_left_out(package: Path, unpacked: Path) -> None:
    """No installer, no scripts of libraries, no records of files that are not there; every module of ours is."""
    lib, tree = unpacked / LIB, package.parents[1]
    assert not list(lib.glob("setuptools*"))
    assert not list(lib.glob("bin"))
    assert not list(lib.glob("*.dist-info/RECORD"))
    for ours in ("daemon", "bridge", "simulator"):
        assert {path.relative_to(lib) for path in (lib / ours).rglob("*.py")} == {
            path.relative_to(tree) for path in (tree / ours).rglob("*.py")
        }


def test_the_scripts_are_sound() -> None:
    """shellcheck has nothing to say about what dpkg runs as root."""
    need("shellcheck")
    scripts = sorted((TREE / "packaging/maintainer").iterdir())
    done = subprocess.run(["shellcheck", *scripts], text=True, capture_output=True, check=False)
    assert done.stdout == ""


def test_it_installs_says_what_is_next_and_goes_without_a_trace(package: Path) -> None:
    """On a Debian that does not run: it works with Debian's own Python, says `sudo mcfd setup` in the language of whoever installs,
    installs over itself without a question, and a purge leaves no file of it."""
    need_debian()
    with debian() as tree:
        before = listing(tree)
        assert "mcfd : installé, mais pas démarré : il ne connaît pas encore sa machine" in tree.install(package).stdout
        version = tree.run("dpkg-query", "-W", "-f", "${Version}", "mcfd").stdout
        assert tree.run("mcfd", "--version").stdout == f"mcfd {version}\n"
        assert tree.run("id", "-nG", "mcfd").stdout.split() == ["mcfd", "dialout"]
        completion = "source /usr/share/bash-completion/completions/mcfd && complete -p mcfd"
        assert "_mcfd_completion" in tree.run("bash", "-c", completion).stdout
        installed = listing(tree)

        tree.run("dpkg", "--install", f"/root/{package.name}")
        said = tree.run("dpkg-reconfigure", "--frontend=noninteractive", "mcfd", LANG="en_GB.UTF-8").stdout
        assert "mcfd: installed, and not started" in said
        assert "sudo mcfd setup" in said
        assert listing(tree) == installed
        assert tree.run("dpkg", "--verify", "mcfd").stdout == ""

        tree.run("apt-get", "purge", "-y", "mcfd")
        assert listing(tree) <= before
        assert tree.run("getent", "passwd", "mcfd", check=False).stdout == ""


def listing(tree: Debian) -> set[str]:
    paths = tree.run("find", "/", "-xdev", "-not", "-name", "*-").stdout.splitlines()
    return {path for path in paths if not path.startswith(DPKGS_OWN)}
