"""What `mcfd doctor` finds and advises, French and English."""

from __future__ import annotations

from collections.abc import Mapping

from daemon.texts import Text

NAMES: Mapping[str, Text] = {
    "configuration": Text("configuration", "configuration"),
    "secrets": Text("secrets", "secrets"),
    "daemon": Text("démon", "daemon"),
    "box_clock": Text("horloge de la boîte", "the box's clock"),
    "disk": Text("disque", "disk"),
    "port": Text("port", "port"),
    "permissions": Text("droits", "permissions"),
    "line": Text("ligne", "line"),
    "machine": Text("machine", "machine"),
    "nim": Text("NIM", "NIM"),
    "clock": Text("horloge de la machine", "the machine's clock"),
    "tax_server": Text("serveur fiscal", "tax server"),
    "ledger": Text("registre", "ledger"),
    "keys": Text("clés", "keys"),
    "attention": Text("à régler", "to be settled"),
    "last_invoice": Text("dernière facture", "last invoice"),
    "upstream": Text("siège", "upstream"),
    "certificate": Text("certificat", "certificate"),
}
"""What each check is called for people; the key is its name for scripts."""

SEE_ABOVE = Text("voir les points au-dessus", "see the points above")

# -- configuration, secrets ---------------------------------------------------------------------------------------------------

CONFIG_FINE = Text("{file} se lit", "{file} can be read")
CORRECT_CONFIG = Text(
    "corriger cette ligne, puis mcfd config check ; pas encore de configuration : sudo mcfd setup",
    "correct that line, then mcfd config check; no configuration yet: sudo mcfd setup",
)
SECRETS_FINE = Text("lisibles par leur seul propriétaire", "readable by their owner alone")
SECRET_OPEN = Text("{file} ({key}) est lisible par d'autres", "{file} ({key}) can be read by others")
SECRET_ADVICE = Text("sudo chmod 600 {file}", "sudo chmod 600 {file}")
SECRET_BAD = Text(
    "remettre le secret que le siège a donné (une ligne whsec_…), ou mcfd upstream keygen",
    "put back the secret that headquarters gave (one line whsec_…), or mcfd upstream keygen",
)

# -- the daemon ---------------------------------------------------------------------------------------------------------------

RUNNING = Text("mcfd {version} répond à {address}", "mcfd {version} answers at {address}")
NOT_RUNNING = Text("personne ne répond à {address} ({why})", "nobody answers at {address} ({why})")
START_IT = Text(
    "sudo systemctl restart mcfd ; s'il ne reste pas debout : journalctl -u mcfd -n 20",
    "sudo systemctl restart mcfd; if it does not stay up: journalctl -u mcfd -n 20",
)
STRANGER = Text(
    "à {address} répond autre chose que mcfd ({why})", "something else than mcfd answers at {address} ({why})"
)
STRANGER_ADVICE = Text(
    "arrêter cet autre programme, ou changer port dans [server] (sudo ss -ltnp montre qui écoute)",
    "stop that other program, or change port in [server] (sudo ss -ltnp shows who listens)",
)
OTHER_VERSION = Text(
    "la version {running} tourne, {installed} est installée", "version {running} runs, {installed} is installed"
)
RESTART_IT = Text("sudo systemctl restart mcfd", "sudo systemctl restart mcfd")

# -- the box ------------------------------------------------------------------------------------------------------------------

BOX_CLOCK = Text("il est {now}", "it is {now}")
BOX_CLOCK_WRONG = Text("la boîte croit qu'il est {now}", "the box takes it to be {now}")
SET_CLOCK = Text(
    "sudo timedatectl set-ntp true, ou sans internet : sudo timedatectl set-time 'AAAA-MM-JJ hh:mm'",
    "sudo timedatectl set-ntp true, or without internet: sudo timedatectl set-time 'YYYY-MM-DD hh:mm'",
)
DISK_FREE = Text("{free} Mo libres dans {folder}", "{free} MB free in {folder}")
DISK_TIGHT = Text("plus que {free} Mo libres dans {folder}", "only {free} MB left in {folder}")
DISK_FULL = Text(
    "{free} Mo libres dans {folder}, moins que la réserve ({reserve} Mo) : les certifications sont refusées",
    "{free} MB free in {folder}, less than the reserve ({reserve} MB): certifications are refused",
)
MAKE_ROOM = Text(
    "faire de la place : sudo journalctl --vacuum-size=50M, copies anciennes de /var/lib/mcfd/backups sur une clé USB ; jamais le registre",
    "make room: sudo journalctl --vacuum-size=50M, old copies in /var/lib/mcfd/backups to a stick; never the ledger",
)
READ_ONLY = Text("{folder} est en lecture seule", "{folder} is read-only")
READ_ONLY_ADVICE = Text(
    "la carte ou le disque s'use : dmesg | tail, copier le registre, changer le support",
    "the card or disk is wearing out: dmesg | tail, copy the ledger, replace the medium",
)
NO_FOLDER = Text("{folder} : {why}", "{folder}: {why}")
NO_FOLDER_ADVICE = Text(
    "sudo systemd-tmpfiles --create mcfd.conf le remet", "sudo systemd-tmpfiles --create mcfd.conf puts it back"
)

# -- the line -----------------------------------------------------------------------------------------------------------------

NONE = Text("aucun", "none")
SWITCHED_OFF = Text("désactivée dans la configuration", "switched off in the configuration")
PORT_THERE = Text("{port} est là", "{port} is there")
NO_SUCH_PORT = Text("{port} n'existe pas", "{port} does not exist")
PLUG_IN = Text(
    "brancher le câble, rallumer la machine ; ports de cette boîte : {ports} ; si le nom a changé : port dans [[machine]]",
    "plug in the cable, switch the machine on; ports of this box: {ports}; if the name has changed: port in [[machine]]",
)
NOT_A_PORT = Text("{port} n'est pas un port série", "{port} is not a serial port")
CORRECT_PORT = Text(
    "corriger port dans [[machine]] ; mcfd machine ports montre ceux de la boîte",
    "correct port in [[machine]]; mcfd machine ports shows those of the box",
)
UNSTABLE_PORT = Text(
    "{port} peut changer de nom au prochain branchement", "{port} may change its name when it is next plugged in"
)
STABLE_PORT = Text('port = "{port}" dans [[machine]]', 'port = "{port}" in [[machine]]')
MAY_OPEN = Text("{user} peut ouvrir {port}", "{user} may open {port}")
MAY_NOT_OPEN = Text("{user} ne peut pas ouvrir {port} ({mode})", "{user} may not open {port} ({mode})")
JOIN_GROUP = Text(
    "sudo usermod -aG dialout {user}, puis rebrancher le câble et sudo systemctl restart mcfd",
    "sudo usermod -aG dialout {user}, then plug the cable in again and sudo systemctl restart mcfd",
)
LINE_FREE = Text("aucun autre programme sur la ligne", "no other program on the line")
HELD = Text("tenue par {names}", "held by {names}")
STOP_OTHER = Text(
    "arrêter ce programme : une seule application parle à la machine (ModemManager : sudo apt purge modemmanager)",
    "stop that program: only one application may speak to the machine (ModemManager: sudo apt purge modemmanager)",
)

# -- the machine --------------------------------------------------------------------------------------------------------------

ANSWERED = Text("{nim} répond : TC {tc}  FVC {fvc}  FRC {frc}", "{nim} answers: TC {tc}  FVC {fvc}  FRC {frc}")
DAEMON_HAS_IT = Text("répond au démon ; {waiting} en attente", "answers the daemon; {waiting} waiting")
NOT_TAKEN_UP = Text("le démon qui tourne ne la connaît pas encore", "the daemon that runs does not know it yet")
OFFLINE = Text("ne répond pas au démon : {why}", "does not answer the daemon: {why}")
CHECK_LINE = Text(
    "machine allumée ? câble enfoncé des deux côtés ? sinon débrancher et rebrancher, puis mcfd doctor",
    "machine switched on? cable in at both ends? otherwise unplug and plug in again, then mcfd doctor",
)
ANSWERS: Mapping[str, tuple[Text, Text]] = {
    "silent": (Text("personne ne répond sur {port}", "nobody answers on {port}"), CHECK_LINE),
    "stranger": (
        Text(
            "sur {port} répond autre chose qu'une machine fiscale",
            "something else than a fiscal machine answers on {port}",
        ),
        Text(
            "autre appareil, ou mauvaise vitesse : vérifier câble, port et baudrate dans [[machine]]",
            "another device, or the wrong speed: check cable, port and baudrate in [[machine]]",
        ),
    ),
}
OTHER_NIM = Text("la machine sur cette ligne est {found}, pas {nim}", "the machine on this line is {found}, not {nim}")
CHECK_CABLE = Text(
    "câbles échangés ? sinon nim dans [[machine]] ; après un remplacement de machine : sudo mcfd setup --force",
    "cables swapped? otherwise nim in [[machine]]; after the machine was replaced: sudo mcfd setup --force",
)
SETTLE = Text("sudo mcfd machine settle {nim}", "sudo mcfd machine settle {nim}")
DRIFT = Text("{seconds} s d'écart avec la boîte", "{seconds} s off the box's clock")
NO_MACHINE_TIME = Text("l'heure de la machine est illisible", "the machine's time cannot be read")
SET_MACHINE_CLOCK = Text("faire régler la machine par son fournisseur", "have the machine set by its supplier")
LAST_MET = Text(
    "dernier contact il y a {days} j ; {waiting} à transmettre", "last contact {days} days ago; {waiting} to be sent"
)
NEVER_MET = Text("aucun contact connu ; {waiting} à transmettre", "no contact known; {waiting} to be sent")
CONNECT_MACHINE = Text(
    "relier la machine à internet (sa SIM, son câble réseau) : après {limit} jours sans contact elle peut se bloquer",
    "connect the machine to the internet (its SIM, its network cable): after {limit} days without contact it may block itself",
)

# -- the ledger ---------------------------------------------------------------------------------------------------------------

LEDGER_SOUND = Text(
    "{path}, {megabytes} Mo, en ordre (tout recalculer : mcfd verify)",
    "{path}, {megabytes} MB, in order (to recompute all of it: mcfd verify)",
)
NO_LEDGER = Text("pas encore de registre à {path}", "no ledger yet at {path}")
NO_LEDGER_ADVICE = Text(
    "normal avant le premier démarrage ; sinon mcfd restore COPIE",
    "as it should be before the first start; otherwise mcfd restore COPY",
)
LEDGER_ADVICE = Text(
    "mcfd verify dit ce qui ne va pas ; remettre une copie : sudo systemctl stop mcfd, sudo mcfd restore COPIE",
    "mcfd verify says what is wrong; to put a copy back: sudo systemctl stop mcfd, sudo mcfd restore COPY",
)
NOT_ITS_OWN = Text("{user} ne peut pas écrire {files}", "{user} may not write {files}")
GIVE_BACK = Text("sudo chown {user}: sur ces fichiers", "sudo chown {user}: on those files")
HAS_KEY = Text("au moins une clé en vigueur", "at least one key in force")
NO_KEY = Text("aucune clé : aucune caisse ne peut se servir de la machine", "no key: no till can use the machine")
MAKE_KEY = Text("sudo mcfd keys create --nim {nim}", "sudo mcfd keys create --nim {nim}")
NOT_REFUSED = Text("la machine n'a pas refusé la dernière facture", "the machine did not refuse the last invoice")
LAST_REFUSED = Text(
    "la machine a refusé la dernière facture, {number} : {reason}",
    "the machine refused the last invoice, {number}: {reason}",
)
REFUSED_ADVICE = Text(
    "machine non activée, bloquée ou désactivée : appeler la DGI ; un montant ou un texte : corriger à la caisse",
    "machine not activated, blocked or deactivated: call the tax authority; an amount or a text: correct it at the till",
)

# -- upstream, certificate ----------------------------------------------------------------------------------------------------

NO_UPSTREAM = Text("pas de section [upstream] : les clôtures restent ici", "no section [upstream]: closures stay here")
NOTHING_TO_SEND = Text("rien à envoyer encore", "nothing to send yet")
BACKLOG = Text(
    "{waiting} clôture(s) en attente, {parked} mise(s) de côté, la plus ancienne depuis {hours} h",
    "{waiting} closure(s) waiting, {parked} parked, the oldest for {hours} h",
)
BACKLOG_ADVICE = Text(
    "vérifier internet et l'adresse du siège ; rien n'est perdu : mcfd upstream status",
    "check the internet and headquarters' address; nothing is lost: mcfd upstream status",
)
PARKED_ADVICE = Text(
    "le siège les a refusées : régler avec lui, puis sudo mcfd upstream replay",
    "headquarters refused them: settle it with them, then sudo mcfd upstream replay",
)
LOOPBACK_ONLY = Text("pas nécessaire : cette boîte seule", "not needed: this box alone")
PLAIN_LAN = Text(
    "{host} en clair : les clés passent en clair sur le réseau", "{host} in clear: keys cross the network in clear"
)
PLAIN_LAN_ADVICE = Text(
    'sudo mcfd tls init, puis tls = "internal" dans [server]', 'sudo mcfd tls init, then tls = "internal" in [server]'
)
CERTIFICATE_UNTIL = Text("jusqu'au {until} ({days} j) pour {names}", "until {until} ({days} days) for {names}")
NO_CERTIFICATE_ADVICE = Text(
    "sudo mcfd tls init, ou corriger tls_cert dans [server]", "sudo mcfd tls init, or correct tls_cert in [server]"
)
RENEWED_BY_DAEMON = Text(
    "le démon le renouvelle à son démarrage : sudo systemctl restart mcfd",
    "the daemon renews it at its start: sudo systemctl restart mcfd",
)
RENEW_IT = Text(
    "le faire renouveler, remplacer les deux fichiers, sudo systemctl reload mcfd",
    "have it renewed, replace both files, sudo systemctl reload mcfd",
)
