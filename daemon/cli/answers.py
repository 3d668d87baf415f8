"""What the commands answer, French and English."""

from __future__ import annotations

from daemon.texts import Text

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
KEY_MADE = Text(
    'clé privée écrite dans {path} ; dans [upstream] : key_file = "{path}" ; la clé publique pour le siège :',
    'private key written to {path}; in [upstream]: key_file = "{path}"; the public key for headquarters:',
)
PORT = Text("PORT", "PORT")
STATE = Text("ÉTAT", "STATE")
LAST_INVOICE = Text("DERNIÈRE FACTURE", "LAST INVOICE")
NOT_CONFIGURED = Text("pas configurée", "not configured")
IN_ATTENTION = Text("ATTENTION", "ATTENTION")
DISABLED = Text("désactivée", "disabled")
NEVER_READ = Text("jamais lue", "never read")
KNOWN = Text("connue", "known")
STABLE = Text("NOM STABLE", "STABLE NAME")
DEVICE = Text("PORT", "DEVICE")
PRODUCT = Text("PRODUIT", "PRODUCT")
SERIAL = Text("N° DE SÉRIE", "SERIAL")
NO_PORTS = Text("aucun port série sur cette boîte", "no serial port on this box")
WHICH_MACHINE = Text("laquelle ? {nims}", "which one? {nims}")
PORT_BUSY = Text(
    "{port} est tenu par un autre programme, sans doute le démon ; voici ce que le registre sait",
    "{port} is held by another program, most likely the daemon; this is what the ledger knows",
)
NO_ANSWER = Text(
    "la machine n'a pas été lue : {why} ; voici ce que le registre sait",
    "the machine was not read: {why}; this is what the ledger knows",
)
OTHER_MACHINE = Text(
    "attention : la configuration dit {nim}, la machine sur ce port est {found}",
    "note: the configuration says {nim}, the machine on this port is {found}",
)
TRADE_NAME = Text("ENSEIGNE", "TRADE NAME")
CITY = Text("VILLE", "CITY")
MACHINE_CLOCK = Text("HORLOGE", "CLOCK")
DRIFT = Text("{time} (écart avec la boîte : {drift} s)", "{time} (the box is {drift} s ahead)")
COUNTERS = Text("COMPTEURS", "COUNTERS")
TAX_SERVER = Text("SERVEUR FISCAL", "TAX SERVER")
DAYS_AGO = Text("dernier contact {at} (il y a {days} j)", "last contact {at} ({days} days ago)")
TO_TAX_SERVER = Text("À TRANSMETTRE", "TO BE SENT")
SERVER_ERROR = Text("ERREUR", "ERROR")

# -- command line: settling -----------------------------------------------------------------------------------------------

NOTHING_TO_SETTLE = Text("rien à régler : aucune machine en attention", "nothing to settle: no machine is in attention")
FOUND = Text("{nim} : {found}", "{nim}: {found}")
THE_ATTEMPT = Text(
    "facture sans issue connue : {number} ({type}, {total} XOF), commencée {at}",
    "invoice without a known outcome: {number} ({type}, {total} XOF), begun {at}",
)
LEDGER_KNOWS = Text(
    "le registre sait : {counters}, dernière facture {number}", "the ledger knows: {counters}, last invoice {number}"
)
MACHINE_SAID = Text("la machine a dit ({at}) : {nim}, {counters}", "the machine said ({at}): {nim}, {counters}")
MACHINE_LAST = Text(
    "  sa dernière facture : {number} ({type}, {total} XOF), code {code}, {time}",
    "  its last invoice: {number} ({type}, {total} XOF), code {code}, {time}",
)
NO_EVIDENCE = Text(
    "on ne sait pas ce que dit la machine : branchez-la, ou arrêtez le démon pour qu'elle puisse être lue ici",
    "it is not known what the machine says: plug it in, or stop the daemon so that it can be read here",
)
ASK_DECISION = Text("Décision", "Decision")
ASK_REASON = Text("Raison", "Reason")
MEANS_CERTIFIED = Text(
    "la machine l'a certifiée : son code entre au registre", "the machine did certify it: its code enters the ledger"
)
MEANS_NOT_CERTIFIED = Text(
    "elle ne l'a pas certifiée : le numéro est de nouveau libre", "it did not certify it: the number is free again"
)
MEANS_ADOPT = Text(
    "reprendre compteurs et dernière facture de la machine : son numéro ne resservira pas",
    "take over the machine's counters and last invoice: its number is never given out again",
)
NEEDS_OPTION = Text("sans terminal il faut {option}", "without a terminal {option} is needed")
NOT_THIS_DECISION = Text(
    "{decision} ne va pas ici ; possible : {choices}", "{decision} does not fit here; possible: {choices}"
)
NOT_ITS_LAST = Text(
    "la dernière facture de la machine n'est pas {number} à ce montant : son code ne peut pas être repris ; "
    "si la machine ne l'a pas certifiée : not-certified",
    "the machine's last invoice is not {number} with this total: its code cannot be taken from it; "
    "if the machine did not certify it: not-certified",
)
SETTLED = Text(
    "réglé et écrit au registre ; un démon qui tourne reprend dans quelques secondes",
    "settled and written to the ledger; a running daemon goes on within seconds",
)

# -- command line: the ledger's file --------------------------------------------------------------------------------------

VERIFIED = Text(
    "{path} : tout est juste ({books} livre(s), {records} enregistrement(s), {closures} clôture(s) Z)",
    "{path}: all is right ({books} book(s), {records} record(s), {closures} Z closure(s))",
)
NOT_VERIFIED = Text("{path} : {count} problème(s)", "{path}: {count} problem(s)")
PROGRESS = Text("{records} enregistrements …", "{records} records …")
FILE_OR_INTO = Text("il faut FICHIER ou --into RÉPERTOIRE", "FILE or --into FOLDER is needed")
EXISTS = Text("{path} existe déjà", "{path} exists already")
BACKED_UP = Text(
    "copie vérifiée : {path} ({records} enregistrement(s), {closures} clôture(s) Z)",
    "verified copy: {path} ({records} record(s), {closures} Z closure(s))",
)
DELETED = Text("supprimée : {path}", "deleted: {path}")
SAME_FILE = Text("{path} est le registre lui-même", "{path} is the ledger itself")
ASK_RESTORE = Text("Remplacer {path} par {file} ?", "Replace {path} by {file}?")
RESTORED = Text(
    "{path} remis ({records} enregistrement(s), {closures} clôture(s) Z)",
    "{path} put back ({records} record(s), {closures} Z closure(s))",
)
KEPT_ASIDE = Text("l'ancien registre est gardé : {path}", "the ledger it replaces is kept: {path}")
COMPARED_NEXT = Text(
    "au prochain démarrage il est comparé avec la machine ; si elle a certifié depuis : mcfd machine settle",
    "at the next start it is compared with the machine; should that have certified since: mcfd machine settle",
)
CONFIG_FINE = Text("{file} : tout va bien ({nims})", "{file}: all is well ({nims})")

# -- command line: HTTPS --------------------------------------------------------------------------------------------------

TLS_FOLDER = Text("RÉPERTOIRE", "FOLDER")
TLS_NAMES = Text("NOMS", "NAMES")
TLS_UNTIL = Text("JUSQU'AU", "UNTIL")
TLS_TRUST = Text(
    "les caisses doivent lui faire confiance : mcfd tls export-ca > mcfd-ca.pem",
    "tills have to trust it: mcfd tls export-ca > mcfd-ca.pem",
)
TLS_SWITCH_ON = Text(
    'pour qu\'elle serve : tls = "internal" dans [server] de {file}, puis sudo systemctl restart mcfd',
    'to put it in use: tls = "internal" in [server] of {file}, then sudo systemctl restart mcfd',
)
TLS_FINGERPRINT = Text("empreinte SHA-256 : {fingerprint}", "SHA-256 fingerprint: {fingerprint}")

# -- command line: doctor -------------------------------------------------------------------------------------------------

FINE = Text("bien", "ok")
WARNING = Text("ATTENTION", "WARNING")
WRONG = Text("FAUX", "WRONG")
