# ruff: noqa: INP001 -- a script, run by `make release`; a package of this name would hide PyPI's `packaging`
"""The package for another processor, tried on an emulated one: `emulated.py PACKAGE [SUITE]`, as root.

A Debian of that architecture is made, the package goes in, a simulated machine is put on a pseudo-terminal, `mcfd setup` finds
it, the daemon runs, three invoices are certified over HTTP and asked for again, and the ledger verifies. Some ten minutes:
before a release, not at every change. Wants mmdebstrap, qemu-user-static, arch-test and the kernel's binfmt_misc.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

QEMU = {"arm64": "aarch64", "amd64": "x86_64"}
BINFMT = Path("/proc/sys/fs/binfmt_misc")
# Inside, with the package's own libraries and Debian's own Python; prints what it saw, and fails on the first surprise.
TRIAL = r"""
import json, os, shutil, subprocess, sys, time, urllib.request
NIM = "EL02000015-1"
LINE = "/run/machine/line"
os.mkdir("/run/machine")
shutil.chown("/run/machine", "mcfd", "mcfd")
simulator = ("import sys; sys.path.insert(0, '/usr/lib/mcfd'); from simulator.process.serve import main; main()",
             "--nim", NIM, "--ifu", "00084440Y", "--link", LINE, "--baud", "0")
started = [subprocess.Popen(["/usr/bin/python3", "-IS", "-c", *simulator], user="mcfd", group="mcfd")]
def until(look, what, patience=240):
    end = time.monotonic() + patience
    while True:
        try:
            return look()
        except (OSError, StopIteration) as error:
            if time.monotonic() > end:
                raise SystemExit(f"{what}: {error}")
            time.sleep(0.5)
try:
    until(lambda: os.stat(LINE), "no machine")
    said = subprocess.run(["mcfd", "setup", "--yes", "--json", "--port", LINE], check=True, stdout=subprocess.PIPE).stdout
    key = json.loads(said)["machines"][0]["key"]
    began = time.monotonic()
    started.append(subprocess.Popen(["mcfd", "run"], user="mcfd", group="mcfd", stderr=subprocess.DEVNULL))
    base = "http://127.0.0.1:8480"
    until(lambda: urllib.request.urlopen(base + "/health/ready", timeout=60), "not ready")
    print(f"{os.uname().machine}, Python {sys.version.split()[0]}: ready after {time.monotonic() - began:.1f} s")
    def ask(number):
        body = {"invoiceNumber": number, "invoiceType": "FV", "payments": [{"method": "E", "amount": 15000}],
                "items": [{"name": "Riz 25 kg", "taxGroup": "B", "unitPrice": 15000, "quantity": 1}]}
        head = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
        request = urllib.request.Request(f"{base}/v1/mcf/{NIM}/certify", json.dumps(body).encode(), head)
        try:
            with urllib.request.urlopen(request, timeout=120) as answer:
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as error:
            return error.code, json.load(error)
    for number in ("FV-1", "FV-2", "FV-3"):
        status, answer = ask(number)
        assert status == 200 and answer["codeSecef"], answer
        print(f"{number}: {answer['codeSecef']}")
    status, answer = ask("FV-2")
    assert (status, answer["code"]) == (409, "DUPLICATE_INVOICE"), answer
finally:
    for process in reversed(started):
        process.terminate()
        process.wait()
subprocess.run(["mcfd", "verify"], check=True)
"""


def run(*command: str | Path) -> str:
    words = [str(word) for word in command]
    done = subprocess.run(words, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)  # noqa: S603  # our own
    if done.returncode:
        sys.exit(f"mcfd: {words[0]} ended with {done.returncode}\n{done.stdout[-3000:]}")
    return done.stdout


def emulate(arch: str) -> None:
    """Has the kernel start programs of `arch` by qemu, as systemd-binfmt does at boot."""
    if arch == run("dpkg", "--print-architecture").strip() or (BINFMT / f"qemu-{QEMU[arch]}").exists():
        return
    rule = Path(f"/usr/lib/binfmt.d/qemu-{QEMU[arch]}.conf")
    if not rule.exists() or shutil.which("arch-test") is None:
        sys.exit("mcfd: apt-get install qemu-user-static arch-test")
    if not (BINFMT / "register").exists():
        run("mount", "-t", "binfmt_misc", "binfmt_misc", BINFMT)
    (BINFMT / "register").write_text(rule.read_text(encoding="utf-8"), encoding="utf-8")


def mirror() -> str:
    """Where this machine's own apt gets Debian from."""
    targets = run("apt-get", "indextargets", "--format", "$(LABEL) $(REPO_URI)", "Created-By: Packages")
    return next(line.split()[-1] for line in targets.splitlines() if line.startswith("Debian "))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("package", type=Path)
    parser.add_argument("suite", nargs="?", default="trixie")
    parser.add_argument("--base", type=Path, help="an archive of such a tree, made before")
    arguments = parser.parse_args()
    if os.geteuid() != 0:
        sys.exit("mcfd: a Debian tree is made and entered by root only")
    arch = run("dpkg-deb", "--field", arguments.package, "Architecture").strip()
    emulate(arch)
    with tempfile.TemporaryDirectory(prefix="mcfd-emulated-") as scratch:
        tree, archive = Path(scratch) / "tree", Path(scratch) / "tree.tar"
        if arguments.base is None:
            run("mmdebstrap", f"--architectures={arch}", "--variant=minbase", "--include=python3,systemd,udev",
                arguments.suite, archive, mirror())  # fmt: skip
        tree.mkdir()
        run("tar", "-C", tree, "-xf", arguments.base or archive)
        shutil.copy(arguments.package, tree / "root")
        (tree / "root/trial.py").write_text(TRIAL, encoding="utf-8")
        inside = (
            'mount -t proc proc "$0/proc" && mount -t devpts -o newinstance,ptmxmode=0666 devpts "$0/dev/pts" && '
            'ln -sf pts/ptmx "$0/dev/ptmx" && exec chroot "$0" sh -c '
            f'"DEBIAN_FRONTEND=noninteractive apt-get install -y /root/{arguments.package.name} && python3 -u /root/trial.py"'
        )
        said = run("unshare", "--mount", "--net", "--pid", "--fork", "--kill-child", "--propagation", "private", "--",
                   "sh", "-c", f"ip link set lo up 2>/dev/null; {inside}", tree)  # fmt: skip
    sys.stdout.write("\n".join(said.splitlines()[-6:]) + "\n")


if __name__ == "__main__":
    main()
