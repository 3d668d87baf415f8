import os
import subprocess
from pathlib import Path

from support.line.states import locked_line, silent_line
from support.shop import wait_for

from bridge.ports import Holder, find_holders


def test_who_has_the_port_open(tmp_path):
    """A program that locks nothing is seen all the same, by its number and name; through a link too."""
    with silent_line(tmp_path / "line") as line:
        assert find_holders(line) == []
        with locked_line(line) as pid:
            assert find_holders(line) == find_holders(line.resolve()) == [Holder(pid, "sleep")]
            assert str(find_holders(line)[0]) == f"sleep ({pid})"
        assert find_holders(line) == []


def test_the_far_end_of_a_pseudo_terminal_is_the_machine(tmp_path):
    """A simulator keeps both ends open and is no other till; nor is this process, which has the port open itself."""
    leader, follower = os.openpty()
    try:
        line = tmp_path / "line"
        line.symlink_to(os.ttyname(follower))
        with subprocess.Popen(["sleep", "60"], pass_fds=(leader, follower)) as simulator:
            assert find_holders(line) == []
            simulator.kill()
    finally:
        os.close(leader)
        os.close(follower)


def test_a_device_of_the_same_name_in_a_container_is_another_one(tmp_path):
    """A container's programs are seen in /proc, and their /dev is not ours: the name of what they hold proves nothing."""
    device = tmp_path / "dev" / "line"
    device.parent.mkdir()
    device.touch()
    inside = f"mount -t tmpfs none {device.parent} && exec sleep 60 3>{device}"
    with subprocess.Popen(["unshare", "--map-root-user", "--mount", "sh", "-c", inside]) as container:
        stored = Path(f"/proc/{container.pid}/fd/3")
        wait_for(lambda: stored.is_symlink() and stored.readlink() == device, "the container's device")
        with locked_line(device) as pid:
            found = find_holders(device)
        container.kill()
    assert found == [Holder(pid, "sleep")]


def test_a_box_that_does_not_tell(tmp_path):
    """No /proc, a process that is gone, one that is somebody else's: nobody, and no error."""
    assert find_holders(tmp_path / "line", tmp_path / "none") == []
    (tmp_path / "proc" / "42").mkdir(parents=True)
    assert find_holders(tmp_path / "line", tmp_path / "proc") == []
