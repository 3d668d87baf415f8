"""`docs/configuration.md`, made from the structs: `mcfd config doc > docs/configuration.md`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec

from daemon.settings.describe import Key, SectionInfo, sections

HEAD = """\
# Configuration

Made from `daemon/settings/model.py` by `mcfd config doc`; a test holds the two together.

- **File.** `--config FILE`, or `MCFD_CONFIG`, or `/etc/mcfd/mcfd.toml`, or `./mcfd.toml`: the first of them. It is TOML.
  Relative paths are taken from the file's directory. A commented example: `config/mcfd.toml`.
- **Environment.** `MCFD_<SECTION>_<KEY>` overrides a key, as `MCFD_SERVER_PORT=9000`; the names are in the tables. Lists are
  separated by commas. An empty value unsets a key that may be left out. A section that the file leaves out is made
  (`MCFD_UPSTREAM_KIND`). `[[machine]]`, `[machine.habits]` and `[[webhook]]` are set in the file only.
- **Checked at the start.** An unknown or misspelt key, a wrong type, a value that cannot be stops the start with one line
  that names the key and says why, and exit code 2. `mcfd config check` does the same without starting. Arrays count from 0:
  `machine[1]` is the second `[[machine]]`.
- **Secrets** are in files of their own, never here. Under systemd, a credential of the same file name (`LoadCredential=`)
  goes before the file: `$CREDENTIALS_DIRECTORY/upstream.secret` serves for
  `secret_file = "/etc/mcfd/credentials/upstream.secret"`. systemd hands them over at the start: a changed one wants a restart.
- **Reload.** `systemctl reload mcfd` (SIGHUP) brings keys marked *reload* into force; the others need a restart, and the
  daemon's log says which of them had changed.
"""


def render() -> str:
    return "\n".join([HEAD, *("\n".join(_section(section)) + "\n" for section in sections().values())])


def _section(section: SectionInfo) -> Iterator[str]:
    yield f"## [[{section.name}]]" if section.many and "." not in section.name else f"## [{section.name}]"
    yield ""
    yield section.text
    yield ""
    yield "| key | value | default | in force after | meaning |"
    yield "|---|---|---|---|---|"
    for key in section.keys:
        after = "reload" if key.reload else "restart"
        yield f"| `{key.name}` | {key.expected} | {_default(key)} | {after} | {key.text} |"
    by_environment = [key.variable for key in section.keys if key.by_environment]
    if by_environment and not section.many:
        yield ""
        yield "Environment: " + ", ".join(f"`{name}`" for name in by_environment) + "."


def _default(key: Key) -> str:
    if key.default is msgspec.NODEFAULT:
        return "**required**"
    if key.default in (None, "", (), {}):
        return "–"
    plain = str(key.default) if isinstance(key.default, Path) else key.default
    return f"`{msgspec.json.encode(plain).decode()}`"


if __name__ == "__main__":
    print(render(), end="")  # noqa: T201  # a script whose output is the file
