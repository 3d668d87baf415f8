"""What `mcfd doctor` finds and advises, French and English."""

from __future__ import annotations

from collections.abc import Mapping

from common.language import Text

NAMES: Mapping[str, Text] = {
    "configuration": Text("configuration"),
    "secrets": Text("secrets"),
    "daemon": Text("daemon"),
    "box_clock": Text("the box's clock"),
    "disk": Text("disk"),
    "disk_sync": Text("disk, syncs"),
    "disk_room": Text("disk, room"),
    "disk_wear": Text("disk, wear"),
    "disk_honesty": Text("disk, honesty"),
    "port": Text("port"),
    "permissions": Text("permissions"),
    "line": Text("line"),
    "machine": Text("machine"),
    "nim": Text("NIM"),
    "clock": Text("the machine's clock"),
    "tax_server": Text("tax server"),
    "ledger": Text("ledger"),
    "keys": Text("keys"),
    "attention": Text("to be settled"),
    "deferred": Text("sales that wait"),
    "last_invoice": Text("last invoice"),
    "upstream": Text("upstream"),
    "certificate": Text("certificate"),
    "proxy": Text("network proxy"),
    "backup": Text("backup"),
    "isf": Text("ISF"),
    "homologation": Text("homologation"),
    "company": Text("company on paper"),
    "logo": Text("logo"),
    "printer": Text("printer"),
}
"""What each check is called for people; the key is its name for scripts."""


# -- configuration, secrets ---------------------------------------------------------------------------------------------------


# -- the daemon ---------------------------------------------------------------------------------------------------------------


# -- the box ------------------------------------------------------------------------------------------------------------------


# -- the line -----------------------------------------------------------------------------------------------------------------


# -- the machine --------------------------------------------------------------------------------------------------------------


ANSWERS: Mapping[str, tuple[Text, Text]] = {
    "silent": (
        Text("nobody answers on {port}"),
        Text("machine switched on? cable in at both ends? otherwise unplug and plug in again, then mcfd doctor"),
    ),
    "stranger": (
        Text("something else than a fiscal machine answers on {port}"),
        Text("another device, or the wrong speed: check cable, port and baudrate in [[machine]]"),
    ),
}


# -- the ledger ---------------------------------------------------------------------------------------------------------------


# -- upstream, certificate ----------------------------------------------------------------------------------------------------
