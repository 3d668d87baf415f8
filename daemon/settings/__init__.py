"""The configuration: one TOML file and the environment."""

from common.settings import SettingsError
from daemon.settings.model import (
    Logs,
    Machine,
    Place,
    Reports,
    Sandbox,
    Server,
    Settings,
    Storage,
    Upstream,
    Webhook,
)
from daemon.settings.source import Changes, changes, check_files, find, load, parse

__all__ = [
    "Changes",
    "Logs",
    "Machine",
    "Place",
    "Reports",
    "Sandbox",
    "Server",
    "Settings",
    "SettingsError",
    "Storage",
    "Upstream",
    "Webhook",
    "changes",
    "check_files",
    "find",
    "load",
    "parse",
]
