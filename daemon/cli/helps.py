"""What `--help` says, French and English."""

from __future__ import annotations

from daemon.texts import Text

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
FOLDER = Text("RÉPERTOIRE", "FOLDER")
HELP_FORCE = Text("Remplacer FICHIER s'il existe.", "Replace FILE if it exists.")
HELP_DECISION = Text(
    "certified : la machine l'a certifiée ; not-certified : non ; adopt : reprendre ce que dit la machine.",
    "certified: the machine did certify it; not-certified: it did not; adopt: take over what the machine says.",
)
HELP_REASON = Text("Pourquoi ; gardé dans le registre.", "Why; kept in the ledger.")
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
