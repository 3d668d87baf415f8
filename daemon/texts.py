"""Every sentence that a shop may see from the command line or the configuration: French first, then English.

French unless the locale says English (the first that is set of `LC_ALL`, `LC_MESSAGES`, `LANG`).
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

Language = Literal["fr", "en"]


def language(environ: Mapping[str, str] = os.environ) -> Language:
    for name in ("LC_ALL", "LC_MESSAGES", "LANG"):
        if value := environ.get(name):
            return "en" if value.lower().startswith("en") else "fr"
    return "fr"


@dataclass(frozen=True)
class Text:
    """One sentence in both languages, with the same `{names}` in both; called with their values."""

    fr: str
    en: str

    def __call__(self, **values: object) -> str:
        return str(self).format(**values)

    def __str__(self) -> str:
        return self.en if language() == "en" else self.fr


# -- configuration ---------------------------------------------------------------------------------------

NO_CONFIG = Text("aucune configuration : ni {paths}", "no configuration: neither {paths}")
NOR = Text(" ni ", " nor ")
UNREADABLE = Text("illisible : {why}", "cannot be read: {why}")
NOT_TOML = Text("n'est pas du TOML : {why}", "is not TOML: {why}")
UNKNOWN_KEY = Text("clé inconnue", "unknown key")
UNKNOWN_SECTION = Text("section inconnue", "unknown section")
DID_YOU_MEAN = Text("{problem} (peut-être {best} ?)", "{problem} (did you mean {best}?)")
MISSING_KEY = Text("manque", "is missing")
WRONG_VALUE = Text("{value} n'est pas admis : il faut {expected}", "{value} is not allowed: it must be {expected}")
NOT_A_SECTION = Text("doit être une section [{name}]", "must be a section [{name}]")
NOT_SECTIONS = Text("s'écrit en sections [[{name}]]", "is written as sections [[{name}]]")
ONLY_IN_FILE = Text("se règle dans le fichier, pas par l'environnement", "is set in the file, not by the environment")
BAD_NIM = Text(
    "{value} n'est pas un NIM (deux lettres majuscules, huit chiffres, parfois - et un compteur : EL02000015-1)",
    "{value} is not a NIM (two capital letters, eight digits, and maybe - and a counter, as EL02000015-1)",
)
SAME_NIM = Text("{value} est la même machine que {other}", "{value} is the same machine as {other}")
SAME_PORT = Text(
    "{value} est déjà le port de {other} ; deux machines ne partagent pas une ligne",
    "{value} is already the port of {other}; two machines cannot share a line",
)
SAME_URL = Text("{value} est déjà l'adresse de {other}", "{value} is already the address of {other}")
NO_MACHINE = Text("aucune section [[machine]] : rien pour certifier", "no [[machine]] section: nothing to certify with")
BAD_ZONE = Text("{value} n'est pas un fuseau horaire connu", "{value} is not a known time zone")
BEYOND_LOOPBACK = Text(
    "{value} est joignable du réseau : il faut tls_cert et tls_key, ou allow_plain_lan = true"
    " (les clés d'API passeraient en clair)",
    "{value} can be reached from the network: set tls_cert and tls_key, or allow_plain_lan = true"
    " (API keys would travel in clear)",
)
NEEDS = Text("va avec {other}, qui manque", "goes with {other}, which is missing")
ONE_OF = Text("il faut {one} ou {other}", "{one} or {other} is needed")
ONLY_WITH = Text("n'a de sens qu'avec {other}", "means something only with {other}")
BAD_URL = Text("{value} n'est pas une adresse {expected}", "{value} is not an address {expected}")
PLAIN_HTTP = Text(
    "{value} enverrait en clair ; https, ou allow_plain_http = true",
    "{value} would send in clear; use https, or allow_plain_http = true",
)
BAD_METHOD = Text(
    "{value} n'est pas un moyen de paiement (E V C M B A)", "{value} is not a method of payment (E V C M B A)"
)
PASSWORD_IN_URL = Text(
    "ne doit pas porter de mot de passe (il finirait dans un journal)",
    "must not carry a password (it would end up in a log)",
)
NOT_READABLE = Text("{path} est illisible : {why}", "{path} cannot be read: {why}")
EMPTY_FILE = Text("{path} est vide", "{path} is empty")
NO_SUCH_FILE = Text("ce fichier n'existe pas", "there is no such file")
IS_DIRECTORY = Text("c'est un répertoire", "it is a directory")
NOT_PERMITTED = Text("droits insuffisants", "permission denied")

# -- what a key holds ------------------------------------------------------------------------------------

A_TEXT = Text("un texte", "text")
A_FULL_TEXT = Text("un texte non vide", "text, not empty")
A_PATH = Text("un chemin", "a path")
A_TRUTH = Text("true ou false", "true or false")
A_WHOLE = Text("un nombre entier", "a whole number")
A_NUMBER = Text("un nombre", "a number")
A_CHOICE = Text("{choices}", "{choices}")
OR = Text(" ou ", " or ")
A_LIST = Text("une liste, chaque élément {item}", "a list, each {item}")
A_TABLE = Text("une table, chaque valeur {item}", "a table, each value {item}")

# -- command line: help ---------------------------------------------------------------------------------------------------

FILE = Text("FICHIER", "FILE")
EXAMPLES = Text("Exemples :", "Examples:")
HELP_MCFD = Text(
    "Le démon à côté de la machine fiscale (MCF) : chaque facture certifiée exactement une fois.",
    "The daemon beside the fiscal machine (MCF): every invoice certified exactly once.",
)
EXIT_CODES = Text(
    "Codes de sortie : 0 tout va bien ; 1 une anomalie ou un refus ; 2 commande ou configuration fausse ; "
    "3 impossible pour l'instant (registre absent, abîmé, plein ou occupé).",
    "Exit codes: 0 all is well; 1 something is wrong or was refused; 2 wrong command line or configuration; "
    "3 not possible now (no ledger, or it is damaged, full or busy).",
)
HELP_CONFIG_OPTION = Text(
    "Le fichier de configuration ; sinon /etc/mcfd/mcfd.toml, puis ./mcfd.toml.",
    "The configuration file; otherwise /etc/mcfd/mcfd.toml, then ./mcfd.toml.",
)
HELP_JSON = Text("Répondre en JSON, pour les scripts.", "Answer in JSON, for scripts.")
HELP_YES = Text("Ne rien demander.", "Ask nothing.")
HELP_RUN = Text(
    "Faire tourner le démon. Au premier plan, journal sur stderr ; SIGTERM finit ce qui est sur la ligne et l'arrête.",
    "Run the daemon. In the foreground, log on stderr; SIGTERM finishes what is on the line and stops it.",
)
HELP_CONFIG = Text("Vérifier ou documenter la configuration.", "Check or document the configuration.")
HELP_CONFIG_CHECK = Text(
    "Vérifier la configuration sans démarrer, secrets et certificats compris.",
    "Check the configuration without starting, secrets and certificates included.",
)
HELP_CONFIG_DOC = Text("Écrire la documentation de chaque clé (Markdown).", "Print what each key means (Markdown).")
HELP_VERSION = Text("Montrer les versions.", "Show the versions.")
HELP_KEYS = Text("Gérer les clés d'API.", "Manage API keys.")
HELP_KEYS_CREATE = Text(
    "Créer une clé pour un NIM et l'écrire, seule, sur stdout. Elle n'est montrée qu'une fois.",
    "Make a key for a NIM and print it, alone, on stdout. It is shown only once.",
)
HELP_KEYS_LIST = Text("Lister les clés ; jamais leur valeur.", "List the keys; never their value.")
HELP_KEYS_REVOKE = Text(
    "Révoquer la clé ID : effet immédiat, même dans un démon qui tourne.",
    "Revoke the key ID: at once, also in a running daemon.",
)
HELP_NIM = Text("Le NIM de la machine.", "The machine's NIM.")
HELP_TEST = Text("Une clé de test : machine simulée, rien ne compte.", "A test key: simulated machine, nothing counts.")
HELP_LABEL = Text("À qui est la clé, par exemple « caisse 1 ».", 'Whose key it is, as "till 1".')
HELP_ALL = Text("Montrer aussi les clés révoquées.", "Show revoked keys too.")
HELP_VERIFY = Text(
    "Vérifier le registre : intégrité, chaîne, totaux, suite des Z. Code 1 si quelque chose est faux.",
    "Verify the ledger: integrity, chain, totals, sequence of Z. Exit 1 when something is wrong.",
)
HELP_BACKUP = Text(
    "Copier le registre, même pendant que le démon tourne, et vérifier la copie.",
    "Copy the ledger, also while the daemon runs, and verify the copy.",
)
HELP_INTO = Text("Le répertoire où mettre une copie datée.", "The directory to put a dated copy in.")
HELP_KEEP_DAILY = Text(
    "Avec --into : garder la dernière copie de tant de jours.", "With --into: keep the newest of so many days."
)
HELP_KEEP_MONTHLY = Text("Avec --into : et de tant de mois.", "With --into: and of so many months.")
HELP_RESTORE = Text(
    "Remettre une copie à la place du registre (démon arrêté). La machine est comparée au démarrage suivant.",
    "Put a copy back in the ledger's place (daemon stopped). It is compared with the machine at the next start.",
)
HELP_MACHINE = Text(
    "Voir les machines ; régler ce qui demande une décision.", "Look at the machines; settle what needs a decision."
)
HELP_MACHINE_LIST = Text(
    "Les machines configurées et ce que le registre en sait.",
    "The machines configured, and what the ledger knows of them.",
)
HELP_MACHINE_INFO = Text(
    "Lire la machine si son port est libre ; sinon ce que le registre en sait.",
    "Read the machine when its port is free; otherwise what the ledger knows.",
)
HELP_MACHINE_PORTS = Text(
    "Les ports série de cette boîte ; rien n'est ouvert.", "The serial ports of this box; nothing is opened."
)
HELP_MACHINE_SETTLE = Text(
    "Régler une machine en « attention » : montre ce qui a été trouvé, demande une décision et sa raison, les écrit au registre.",
    "Settle a machine in attention: shows what was found, asks for a decision and its reason, writes them to the ledger.",
)
HELP_UPSTREAM = Text(
    "Voir et renvoyer les clôtures vers le siège.", "Look at closures on their way to headquarters, send them again."
)
HELP_UPSTREAM_STATUS = Text(
    "Ce qui attend, ce qui est mis de côté, la dernière erreur.", "What waits, what is parked, the last error."
)
HELP_UPSTREAM_REPLAY = Text(
    "Renvoyer les clôtures mises de côté ; avec --from, toutes à partir de ce numéro Z.",
    "Send the parked closures again; with --from, all from that Z number on.",
)
HELP_FROM = Text("Le premier numéro Z à renvoyer.", "The first Z number to send again.")
HELP_UPSTREAM_KEYGEN = Text(
    "Créer une clé privée (Ed25519) dans FICHIER et montrer la clé publique, pour le siège.",
    "Make a private key (Ed25519) in FILE and show the public one, for headquarters.",
)

# -- command line: answers ------------------------------------------------------------------------------------------------

BROKEN_OFF = Text("interrompu", "broken off")
ID = Text("ID", "ID")
MODE = Text("MODE", "MODE")
LABEL = Text("LIBELLÉ", "LABEL")
CREATED = Text("CRÉÉE", "CREATED")
REVOKED = Text("RÉVOQUÉE", "REVOKED")
NO_LEDGER = Text(
    "pas encore de registre à {path} ; `mcfd run` ou `mcfd keys create` le crée",
    "no ledger yet at {path}; `mcfd run` or `mcfd keys create` makes it",
)
NIM_NOT_CONFIGURED = Text(
    "attention : {nim} n'est pas dans la configuration ; la clé est créée quand même",
    "note: {nim} is not in the configuration; the key is made all the same",
)
KEY_REVOKED = Text("clé {id} révoquée", "key {id} revoked")
WAITING = Text("EN ATTENTE", "WAITING")
PARKED = Text("MISES DE CÔTÉ", "PARKED")
OLDEST = Text("PLUS ANCIENNE", "OLDEST")
LAST_SENT = Text("DERNIER ENVOI", "LAST SENT")
LAST_ERROR = Text("DERNIÈRE ERREUR", "LAST ERROR")
NO_UPSTREAM = Text(
    "pas de section [upstream] : les clôtures restent dans le registre",
    "no [upstream] section: closures stay in the ledger",
)
REPLAYED = Text("{count} clôture(s) à renvoyer", "{count} closure(s) to be sent again")
KEY_EXISTS = Text("{path} existe déjà ; il n'est pas remplacé", "{path} exists already; it is not replaced")
NOT_WRITABLE = Text("{path} ne peut pas être écrit : {why}", "{path} cannot be written: {why}")
KEY_MADE = Text(
    'clé privée écrite dans {path} ; dans [upstream] : key_file = "{path}" ; la clé publique pour le siège :',
    'private key written to {path}; in [upstream]: key_file = "{path}"; the public key for headquarters:',
)
CONFIG_FINE = Text("{file} : tout va bien ({nims})", "{file}: all is well ({nims})")


def reason(error: OSError) -> str:
    """Why a file could not be opened, without its path."""
    if isinstance(error, FileNotFoundError):
        return str(NO_SUCH_FILE)
    if isinstance(error, PermissionError):
        return str(NOT_PERMITTED)
    if isinstance(error, IsADirectoryError):
        return str(IS_DIRECTORY)
    return error.strerror or type(error).__name__
