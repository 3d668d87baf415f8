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
    '{value} est joignable du réseau : il faut tls = "internal", ou tls_cert et tls_key, ou allow_plain_lan = true'
    " (les clés d'API passeraient en clair)",
    '{value} can be reached from the network: set tls = "internal", or tls_cert and tls_key, or allow_plain_lan = true'
    " (API keys would travel in clear)",
)
NEEDS = Text("va avec {other}, qui manque", "goes with {other}, which is missing")
ONE_OF = Text("il faut {one} ou {other}", "{one} or {other} is needed")
ONE_ONLY = Text("exclut {other} : l'un ou l'autre", "excludes {other}: one or the other")
NO_AUTHORITY = Text(
    "pas encore d'autorité dans {folder} : mcfd tls init", "no authority in {folder} yet: mcfd tls init"
)
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

# -- for systemctl status ---------------------------------------------------------------------------------

CERTIFIES = Text("{nim} : certifie", "{nim}: certifies")
SWITCHED_OFF = Text("{nim} : désactivée dans la configuration", "{nim}: switched off in the configuration")
NOT_CONNECTED = Text("{nim} : hors ligne ({why})", "{nim}: offline ({why})")
NEEDS_ATTENTION = Text(
    "{nim} : demande une décision, mcfd machine settle ({found})",
    "{nim}: needs a decision, mcfd machine settle ({found})",
)

# -- the internal authority ------------------------------------------------------------------------------

WRONG_CLOCK = Text(
    "l'horloge de cette boîte dit {now} : réglez-la d'abord (timedatectl set-time)",
    "the clock of this box says {now}: set it first (timedatectl set-time)",
)
AUTHORITY_EXISTS = Text(
    "il y a déjà une autorité dans {folder}, et des caisses lui font peut-être confiance ; --force en fait une nouvelle",
    "there is an authority in {folder} already, and tills may trust it; --force makes a new one",
)
NOT_WRITABLE = Text("{path} ne peut pas être écrit : {why}", "{path} cannot be written: {why}")
NOT_A_CERTIFICATE = Text("{path} ne contient pas de certificat (PEM)", "{path} holds no certificate (PEM)")
NOT_A_KEY = Text("{path} ne contient pas de clé privée", "{path} holds no private key")
NOT_ITS_KEY = Text("{path} n'est pas la clé de {other}", "{path} is not the key of {other}")

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


def reason(error: OSError) -> str:
    """Why a file could not be opened, without its path."""
    if isinstance(error, FileNotFoundError):
        return str(NO_SUCH_FILE)
    if isinstance(error, PermissionError):
        return str(NOT_PERMITTED)
    if isinstance(error, IsADirectoryError):
        return str(IS_DIRECTORY)
    return error.strerror or type(error).__name__
