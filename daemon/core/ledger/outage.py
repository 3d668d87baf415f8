"""The register of outages: from when to when a machine could not certify, why, and who was told (arrêté 2025-0049, article 7 c)."""

from __future__ import annotations

from typing import Literal

OutageReason = Literal["line_lost", "no_answer", "blocked", "deactivated", "attention", "disk", "box_off"]
"""`blocked`: the machine refuses every invoice before it is opened, as when the tax server has not heard of it for too long; `box_off`: seen at
the next start."""
