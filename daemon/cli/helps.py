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

# -- setup ------------------------------------------------------------------------------------------------------------------

HELP_SETUP = Text(
    "Configurer cette boîte. Demande à chaque port série si une machine répond (lecture seule), montre ce qui est trouvé, écrit la "
    "configuration, crée la première clé et la montre une fois, avec l'adresse et un code QR.",
    "Set this box up. Asks every serial port whether a machine answers (only reading), shows what was found, writes the "
    "configuration, makes the first key and shows it once, with the address and a QR code.",
)
HELP_SETUP_CONFIG = Text("Le fichier de configuration à écrire.", "The configuration file to write.")
HELP_SETUP_PORT = Text(
    "Ne demander qu'à ce port ; peut être répété. Sinon tous.", "Ask this port only; may be repeated. Otherwise all."
)
HELP_BAUDRATE = Text("La vitesse de la ligne, bit/s.", "The speed of the line, bit/s.")
HELP_SETUP_NIM = Text(
    "Ne configurer que cette machine ; peut être répété. Sinon toutes celles qui répondent.",
    "Set up this machine only; may be repeated. Otherwise all that answer.",
)
HELP_NETWORK = Text(
    "Qui s'en sert : cette boîte seule (local, par défaut), le réseau de la boutique chiffré (https), ou en clair (plain).",
    "Who uses it: this box alone (local, the default), the shop's network encrypted (https), or in clear (plain).",
)
HELP_HOST = Text("L'adresse où écouter ; sinon selon --network.", "The address to listen on; otherwise by --network.")
HELP_HTTP = Text("Le port TCP.", "The TCP port.")
HELP_LEDGER = Text("Le registre.", "The ledger.")
HELP_ISF = Text("L'ISF des factures qui n'en nomment pas.", "The ISF of invoices that name none.")
HELP_OPERATOR_ID = Text("L'opérateur des factures qui n'en nomment pas.", "The operator of invoices that name none.")
HELP_OPERATOR_NAME = Text("Son nom, par exemple « Caisse 1 ».", 'Its name, as "Caisse 1".')
HELP_FIRST_KEY = Text("Créer une clé pour chaque machine.", "Make a key for each machine.")
HELP_SETUP_FORCE = Text(
    "Remplacer une configuration qui existe ; l'ancienne est gardée à côté.",
    "Replace a configuration that exists; the old one is kept beside it.",
)

# -- HTTPS ------------------------------------------------------------------------------------------------------------------

HELP_TLS = Text("HTTPS par une autorité de la boîte elle-même.", "HTTPS by an authority of the box's own.")
HELP_TLS_INIT = Text(
    "Créer l'autorité et le premier certificat, qui se renouvelle ensuite tout seul.",
    "Make the authority and the first certificate, which is renewed by itself from then on.",
)
HELP_TLS_FORCE = Text(
    "En créer une nouvelle même s'il y en a une : les caisses doivent alors lui faire confiance à nouveau.",
    "Make a new one even if there is one: tills then have to trust it anew.",
)
HELP_TLS_EXPORT = Text(
    "Le certificat de l'autorité, à installer sur les caisses ; sur stdout, ou dans FICHIER.",
    "The authority's certificate, to be installed on the tills; on stdout, or into FILE.",
)
HELP_TLS_SHOW = Text("Le certificat montré aux caisses.", "The certificate that tills are shown.")

# -- doctor -----------------------------------------------------------------------------------------------------------------

HELP_DOCTOR = Text(
    "Examiner tout ce qui tombe en panne sur place, et dire pour chaque point quoi faire. Code 1 si quelque chose ne va pas.",
    "Look at everything that goes wrong in the field, and say for each what to do. Exit 1 when something is wrong.",
)
