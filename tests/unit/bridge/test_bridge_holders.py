import os
import subprocess

from support.lines import held_by_another_program, silent_line

from bridge.holders import Holder, find_holders


def test_who_has_the_port_open(tmp_path):
    """A program that locks nothing is seen all the same, by its number and name; through a link too."""
    with silent_line(tmp_path / "line") as line:
        assert find_holders(line) == []
        with held_by_another_program(line) as pid:
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


def test_a_box_that_does_not_tell(tmp_path):
    """No /proc, a process that is gone, one that is somebody else's: nobody, and no error."""
    assert find_holders(tmp_path / "line", tmp_path / "none") == []
    (tmp_path / "proc" / "42").mkdir(parents=True)
    assert find_holders(tmp_path / "line", tmp_path / "proc") == []
