"""Child processes that run code of this program."""

from __future__ import annotations

import sys


def own_program(code: str) -> tuple[str, ...]:
    """The command that runs `code` with this process's interpreter and module path. The child reads neither the
    environment nor the working directory, where anybody may have put a module of the same name (-I). In the Debian
    package only `sys.path` knows where the modules are."""
    path = [each for each in sys.path if each]
    return (sys.executable, "-I", "-c", f"import sys; sys.path[:] = {path!r}; {code}")
