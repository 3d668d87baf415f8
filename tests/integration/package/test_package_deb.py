"""The packages themselves, and Debians that are not running while one is installed, as when an image for a box is made."""

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.box.cache import scratch
from support.box.debian import BOOKWORM, SID, TRIXIE, Debian, debian, need_debian
from support.box.package import (
    ARCHITECTURES,
    LIB,
    TREE,
    built,
    built_twice,
    lintian_output,
    own_arch,
    uncompressed,
    unpacked,
)
from support.tools import need

pytestmark = pytest.mark.long

PYTHONS = ("311", "312", "313", "314")
MAX_BYTES = 12_000_000
HEAVY_BYTES = 500_000
# What dpkg and apt write about their own doings, and what Debian's Python compiles of itself when it is first used.
DPKGS_OWN = ("/root", "/var/cache", "/var/log", "/var/lib/apt", "/var/lib/dpkg", "/var/lib/systemd/deb-systemd-helper")
IMPORT_ALL = """
import importlib, pkgutil, sys
sys.path.insert(0, sys.argv[1])
count = 0
for package in ("bridge", "common", "daemon", "simulator"):
    root = importlib.import_module(package)
    for module in pkgutil.walk_packages(root.__path__, f"{package}."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
            count += 1
outside = [m.__file__ for m in sys.modules.values() if "-packages" in (getattr(m, "__file__", None) or "")]
print(count, outside)
"""
MACHINES = {"amd64": "Advanced Micro Devices X86-64", "arm64": "AArch64"}


@pytest.fixture(scope="module", params=ARCHITECTURES)
def arch(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def package(arch: str) -> Path:
    return built(arch)


@pytest.fixture(scope="module")
def tree(package: Path) -> Path:
    return unpacked(package)


def test_two_builders_make_the_same_bytes() -> None:
    """Another directory, umask, time zone, language and hash seed change nothing in the package."""
    one, two = built_twice(own_arch())
    assert one.name == two.name
    assert one.read_bytes() == two.read_bytes()


def test_it_is_small_enough_for_a_shops_line(package: Path) -> None:
    """Twelve megabytes at most, with the libraries of four Pythons."""
    assert package.stat().st_size <= MAX_BYTES


def test_nothing_in_it_tells_where_it_was_built(tree: Path) -> None:
    """No file names the builder's directory, and there is no byte code: the box's own Python makes it."""
    builders_own = scratch().name.rpartition("-")[0].encode()  # also of the run that built it
    modules = 0
    for path in tree.rglob("*"):
        assert path.suffix != ".pyc"
        assert path.name != "__pycache__"
        if path.is_file():
            modules += path.suffix == ".py"
            assert builders_own not in path.read_bytes(), path
    assert modules > 500


def test_what_dpkg_is_told(tree: Path) -> None:
    """It fits the Pythons that were tried and no other, and the operator's own configuration is none of dpkg's."""
    control = (tree / "DEBIAN/control").read_text()
    assert "python3 (>= 3.11), python3 (<< 3.15)" in control
    libc = re.search(r"libc6 \(>= 2\.(\d+)\)", control)
    assert int(libc[1]) <= 36, "Debian 12 has 2.36"
    assert (tree / "DEBIAN/conffiles").read_text() == "/etc/mcfd/mcfd.toml.example\n"


def test_compiled_libraries_are_there_for_every_python(tree: Path, arch: str) -> None:
    """Each compiled module is there for all four Pythons or serves all of them (abi3), for the package's own processor, aligned
    for kernels with pages of 16 and 64 KiB on ARM, and without debugging symbols."""
    need("readelf")
    modules = sorted((tree / LIB).rglob("*.so"))
    families: dict[str, set[str]] = {}
    for module in modules:
        name, tag = str(module).split(".", 1)
        families.setdefault(name, set()).update(re.findall(r"cpython-(\d+)|(abi3)", tag)[0])
    assert len(families) >= 6
    for family, tags in families.items():
        assert tags - {""} in ({"abi3"}, set(PYTHONS)), family
    output = subprocess.run(["readelf", "-hlSW", *modules], check=True, text=True, capture_output=True).stdout
    assert set(re.findall(r"Machine: +(.+)", output)) == {MACHINES[arch]}
    assert ".debug_info" not in output
    assert ".symtab" not in output
    if arch == "arm64":
        alignments = {int(found, 16) for found in re.findall(r"^  LOAD .* (0x[0-9a-f]+)$", output, re.MULTILINE)}
        assert min(alignments) >= 0x4000


def test_what_only_builds_or_tests_is_left_out(tree: Path) -> None:
    """No installer, no scripts of libraries, nothing that is not imported; every module of ours is there."""
    lib = tree / LIB
    for name in ("setuptools", "bin", "faker", "polyfactory", "rich", "pygments", "tests"):
        assert not (lib / name).exists(), name
    assert not list(lib.glob("*.dist-info/RECORD"))
    for ours in ("bridge", "common", "daemon", "simulator"):
        assert {path.relative_to(lib) for path in (lib / ours).rglob("*.py")} == {
            path.relative_to(TREE) for path in (TREE / ours).rglob("*.py")
        }


def test_what_a_page_is_made_of_is_there(tree: Path) -> None:
    """Templates, styles, scripts, SQL and texts, all that git has of them: without one a screen is an error on the box, and nowhere else."""
    listed = run_git("ls-files", "bridge", "common", "daemon", "simulator")
    wanted = {name for name in listed if Path(name).suffix not in {".py", ".po", ".typed"}}
    assert len([name for name in wanted if "/templates/" in name or "/static/" in name]) > 30
    assert {name for name in wanted if not (tree / LIB / name).is_file()} == set()


def run_git(*words: str) -> list[str]:
    return subprocess.run(["git", *words], cwd=TREE, check=True, text=True, capture_output=True).stdout.split()


def test_every_heavy_library_has_its_reason(tree: Path) -> None:
    """Half a megabyte is asked for by name in packaging/README.md, with the reason; nothing is named that is not there."""
    sizes = {
        path.name: sum(file.stat().st_size for file in path.rglob("*") if file.is_file())
        for path in (tree / LIB).iterdir()
        if path.is_dir()
    }
    heavy = {name for name, size in sizes.items() if size > HEAVY_BYTES} - {"common", "daemon"}
    page = (TREE / "packaging/README.md").read_text()
    reasons = dict(re.findall(r"^\| `([A-Za-z_]+)` \| [\d.]+ MB \| (.+) \|$", page, re.MULTILINE))
    # The same library is larger on arm64, where segments are aligned for 64 KiB pages.
    assert heavy <= set(reasons) <= set(sizes)
    assert all(len(reason) > 20 for reason in reasons.values())


def test_the_list_of_libraries_is_what_is_there(tree: Path) -> None:
    """CycloneDX: one component for each library in the package, each with a version and a hash that the lock names, and nothing
    that was left out."""
    document = json.loads((tree / "usr/share/doc/mcfd/mcfd.cdx.json").read_text())
    assert (document["bomFormat"], document["specVersion"]) == ("CycloneDX", "1.5")
    listed = {(part["name"], part["version"]) for part in document["components"]}
    present = {
        tuple(path.name.removesuffix(".dist-info").replace("_", "-").lower().rsplit("-", 1))
        for path in (tree / LIB).glob("*.dist-info")
    }
    assert listed == {(name, version) for name, version in present if name != "mcfd"}
    lock = (TREE / "packaging/requirements/run.txt").read_text()
    for part in document["components"]:
        assert re.search(rf"^{re.escape(part['name'])}=={re.escape(part['version'])}\b", lock, re.MULTILINE), part
        assert part["hashes"]
        assert all(f"sha256:{found['content']}" in lock for found in part["hashes"])
        assert part["licenses"][0]


def test_lintian_has_nothing_to_say() -> None:
    """Pedantic and informative tags included; what is overridden has its reason in debian/mcfd.lintian-overrides. `make release`
    asks it about the other architecture too."""
    result = lintian_output(built())
    assert [line for line in result.splitlines() if re.match(r"[EWIP]: ", line)] == []


def test_the_scripts_are_sound() -> None:
    """shellcheck has nothing to say about what dpkg runs as root."""
    need("shellcheck")
    scripts = [
        *(
            path
            for path in sorted((TREE / "debian").iterdir())
            if path.suffix in {".preinst", ".postinst", ".prerm", ".postrm"}
        ),
        *sorted(path for path in (TREE / "packaging/box").iterdir() if path.suffix != ".py"),
        TREE / "packaging/image/build",
        TREE / "packaging/repository",
        TREE / "packaging/release",
    ]
    done = subprocess.run(["shellcheck", *scripts], text=True, capture_output=True, check=False)
    assert done.stdout == ""


@pytest.fixture(scope="module", params=[BOOKWORM, TRIXIE, SID])
def box(request: pytest.FixtureRequest) -> Iterator[Debian]:
    """A Debian that does not run."""
    need_debian()
    with debian(request.param) as found:
        yield found


def test_it_installs_says_what_is_next_and_goes_without_a_trace(box: Debian) -> None:
    """On each Debian, with its own Python: every module of ours can be imported, byte code is made at once and whole, `sudo mcfd setup`
    is said in the language of the installing person, it installs over itself without a question, and a purge leaves no file of it."""
    package = uncompressed(built())
    before = listing(box)
    assert "mcfd : installé, mais pas démarré : il ne connaît pas encore sa machine" in box.install(package).stdout
    version = box.run("dpkg-query", "-W", "-f", "${Version}", "mcfd").stdout
    assert box.run("mcfd", "--version").stdout == f"mcfd {version}\n"
    assert box.run("id", "-nG", "mcfd").stdout.split() == ["mcfd", "dialout", "mcfd-front"]
    completion = "source /usr/share/bash-completion/completions/mcfd && complete -p mcfd"
    assert "_mcfd_completion" in box.run("bash", "-c", completion).stdout
    count, outside = box.run("python3", "-IS", "-c", IMPORT_ALL, "/usr/lib/mcfd").stdout.split(" ", 1)
    assert int(count) > 200
    assert outside == "[]\n"
    installed = listing(box)
    modules = {path for path in installed if path.startswith("/usr/lib/mcfd/") and path.endswith(".py")}
    compiled = {path for path in installed if path.startswith("/usr/lib/mcfd/") and "__pycache__" in path}
    assert len([path for path in compiled if path.endswith(".pyc")]) == len(modules) > 500
    assert not [path for path in compiled if path.endswith(".new")]

    output = box.run("dpkg", "--install", f"/root/{package.name}", LANG="en_GB.UTF-8").stdout
    assert "mcfd: installed, and not started" in output
    assert "sudo mcfd setup" in output
    assert listing(box) == installed
    assert box.run("dpkg", "--verify", "mcfd").stdout == ""

    box.run("apt-get", "purge", "-y", "mcfd")
    assert listing(box) <= before
    assert box.run("getent", "passwd", "mcfd", check=False).stdout == ""


def test_it_installs_into_an_image_without_proc() -> None:
    """Where the image of a box is built in a plain chroot, with no /proc, /sys or /dev of its own: dpkg is content, the user is there, the
    byte code is there, and a purge works too. Folders that systemd-tmpfiles cannot make there are made when the box starts."""
    need_debian()
    package = uncompressed(built())
    with debian(TRIXIE) as box:
        inside = box.bring(package)
        for command in (
            ["dpkg", "--install", inside],
            ["getent", "passwd", "mcfd"],
            ["mcfd", "--version"],
            ["dpkg", "--purge", "mcfd"],
        ):
            done = subprocess.run(["chroot", box.tree, *command], text=True, capture_output=True, check=False)
            assert done.returncode == 0, done.stdout + done.stderr


def test_the_python_that_no_debian_has() -> None:
    """3.12, Ubuntu's: every module of ours can be imported from the package's tree, where this machine has that Python."""
    found = [*Path("/usr/bin").glob("python3.12"), *Path.home().glob(".pyenv/versions/3.12.*/bin/python3.12")]
    if not found:
        pytest.skip("no Python 3.12 here; Debian has none, so it is tried where there is one")
    command = [found[0], "-ISB", "-c", IMPORT_ALL, unpacked(built()) / LIB]
    done = subprocess.run(command, text=True, capture_output=True, check=True)
    assert done.stdout.endswith(" []\n")


def listing(tree: Debian) -> set[str]:
    paths = tree.run("find", "/", "-xdev", "-not", "-name", "*-").stdout.splitlines()
    return {path for path in paths if not path.startswith(DPKGS_OWN)}
