"""The configuration: one TOML file and the environment."""

from common.settings import SettingsError
from daemon.settings.model import Machine, Place, Server, Settings, Storage, Upstream
from daemon.settings.source import changes, check_files, find, load, parse

__all__ = [
    "Machine",
    "Place",
    "Server",
    "Settings",
    "SettingsError",
    "Storage",
    "Upstream",
    "changes",
    "check_files",
    "find",
    "load",
    "parse",
]
