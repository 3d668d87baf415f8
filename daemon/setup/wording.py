"""What `mcfd setup` says and writes, French and English."""

from __future__ import annotations

from daemon.texts import Text

WRITTEN_BY = Text(
    "Écrit par `mcfd setup`. Toutes les clés : `mcfd config doc` ; après un changement : `mcfd config check`.",
    "Written by `mcfd setup`. Every key: `mcfd config doc`; after a change: `mcfd config check`.",
)
UPSTREAM_LATER = Text(
    "Pour envoyer les clôtures au siège : une section [upstream], voir /etc/mcfd/mcfd.toml.example.",
    "To send closures to headquarters: a section [upstream], see /etc/mcfd/mcfd.toml.example.",
)
IS_CONSOLE = Text("la console du système ; elle n'est pas touchée", "the system's own console; it is left alone")

# -- before anything is asked -------------------------------------------------------------------------------------------------

CONFIG_EXISTS = Text(
    "{path} existe déjà ; --force le remplace et garde l'ancien à côté",
    "{path} exists already; --force replaces it and keeps the old one beside it",
)
CANNOT_WRITE = Text(
    "impossible d'écrire dans {folder} : relancez avec sudo", "{folder} cannot be written to: run it with sudo"
)

# -- what was found -----------------------------------------------------------------------------------------------------------

NO_PORT = Text(
    "aucun port série sur cette boîte : branchez le câble USB de la machine, puis recommencez",
    "no serial port on this box: plug in the machine's USB cable, then try again",
)
NO_MACHINE = Text(
    "aucune machine n'a répondu. Est-elle allumée, le câble bien enfoncé, le démon arrêté (systemctl stop mcfd) ?",
    "no machine has answered. Is it switched on, its cable in, the daemon stopped (systemctl stop mcfd)?",
)
NOT_FOUND = Text("{nim} n'a répondu sur aucun port", "{nim} has answered on no port")
SILENT = Text("personne ne répond", "nobody answers")
STRANGER = Text(
    "quelque chose répond, mais pas comme une machine fiscale", "something answers, but not as a fiscal machine"
)
ANSWERED = Text("machine {nim}", "machine {nim}")
CLOCK_OFF = Text(
    "l'horloge de la boîte est à {seconds} s de celle de la machine : réglez-la (timedatectl)",
    "the box's clock is {seconds} s off the machine's: set it (timedatectl)",
)

# -- questions ----------------------------------------------------------------------------------------------------------------

ASK_WHICH = Text("Quelles machines (NIM séparés par des virgules)", "Which machines (NIMs with commas)")
ASK_NETWORK = Text(
    "Qui s'en sert ? local : cette boîte seule ; https : le réseau de la boutique, chiffré ; plain : le réseau, en clair",
    "Who uses it? local: this box alone; https: the shop's network, encrypted; plain: the network, in clear",
)
ASK_ISF = Text("ISF (identifiant du logiciel de caisse)", "ISF (identifier of the till software)")
ASK_OPERATOR = Text("Nom de la caisse sur les factures", "Name of the till on invoices")
ASK_WRITE = Text("Écrire {path} ?", "Write {path}?")

# -- at the end ---------------------------------------------------------------------------------------------------------------

CONFIGURATION = Text("CONFIGURATION", "CONFIGURATION")
KEPT = Text("L'ANCIENNE", "THE OLD ONE")
ADDRESS = Text("ADRESSE", "ADDRESS")
KEY = Text("CLÉ", "KEY")
CERTIFICATE = Text("CERTIFICAT", "CERTIFICATE")
TRUST_IT = Text(
    "{path}, à installer sur les caisses (mcfd tls export-ca)",
    "{path}, to be installed on the tills (mcfd tls export-ca)",
)
SHOWN_ONCE = Text("la clé n'est montrée que cette fois", "the key is shown this once only")
NEXT = Text(
    "ensuite : sudo systemctl restart mcfd, puis mcfd doctor", "next: sudo systemctl restart mcfd, then mcfd doctor"
)
