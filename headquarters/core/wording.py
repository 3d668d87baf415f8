"""A finding as a sentence, in English for programs and in a person's language for people."""

from __future__ import annotations

from common.language import Language
from headquarters.core.finding import Facts, Kind

KIND: dict[Language, dict[Kind, str]] = {
    "fr": {
        "gap": "Clôture manquante",
        "late": "Clôture en retard",
        "fork": "Registre dédoublé",
        "chain": "Chaîne rompue",
        "counters": "Compteurs",
        "unexplained": "Factures inexpliquées",
        "tax-server": "Serveur fiscal",
        "version": "Ancienne version",
        "clock": "Horloge",
        "refused": "Messages refusés",
    },
    "en": {
        "gap": "Missing closure",
        "late": "Late closure",
        "fork": "Forked ledger",
        "chain": "Broken chain",
        "counters": "Counters",
        "unexplained": "Unexplained invoices",
        "tax-server": "Tax server",
        "version": "Old version",
        "clock": "Clock",
        "refused": "Refused messages",
    },
}

_SENTENCES: dict[Language, dict[str, str]] = {
    "fr": {
        "gap": "Z {first} à {last} manquent",
        "gap.one": "Z {first} manque",
        "gap.gone": "Z {first} à {last} ne sont jamais arrivés, et le boîtier ne les a plus : un registre perdu les avait donnés",
        "late.never": "ni Z ni aucun autre signe jusqu'ici",
        "late": "aucun Z depuis le {since}, et aucun signe depuis le {silent}",
        "fork.id": "le Z {z} est arrivé une deuxième fois avec d'autres chiffres ({id})",
        "fork.number": "deux clôtures portent le numéro Z {z} : {other} et {id}",
        "fork.previous": "les Z {other} et {z} suivent la même clôture : le registre a été remis en arrière",
        "fork.behind": "le boîtier ne connaît que le Z {knows}, le siège a le Z {z} : le registre a été remis en arrière",
        "fork.ledger": "le boîtier a un nouveau registre ({ledger}), le siège a reçu jusqu'au Z {z} d'un autre",
        "fork.head": "le boîtier a une autre empreinte ({has}) pour le Z {z} que le siège ({held})",
        "chain.head": "l'empreinte du Z {z} n'est pas celle de ses chiffres",
        "chain.previous": "le Z {z} ne suit pas le Z précédent (annonce {has}, reçu {held})",
        "counters.sum": "Z {z} : les compteurs ont avancé de {grown}, le nombre de factures est {told}",
        "counters.down": "Z {z} : les compteurs {counter} ont reculé",
        "counters.opening": "Z {z} ne commence pas aux compteurs où le Z précédent finit",
        "counters.fvc": "Z {z} commence à FVC {start}, le Z précédent finit à {end}",
        "unexplained": "Z {z} : {count} factures sur la machine que le registre n'explique pas",
        "unexplained.one": "Z {z} : une facture sur la machine que le registre n'explique pas",
        "tax-server": "la machine n'a pas joint le serveur fiscal depuis {days} jours",
        "version": "version {has}, la dernière est {newest}",
        "clock.box": "l'horloge du boîtier est décalée de {seconds} s",
        "refused": "avec la clé NATS de ce magasin, des messages sont arrivés le {day} qui ne sont ni une clôture ni un état ({reason}) : boîtier défectueux, ou clé volée",
        "clock.machine": "l'horloge de la machine est décalée de {seconds} s de celle du boîtier",
    },
    "en": {
        "gap": "Z {first} to {last} are missing",
        "gap.one": "Z {first} is missing",
        "gap.gone": "Z {first} to {last} have never come, and the box does not have them: a lost ledger gave them",
        "late.never": "no Z and no other sign so far",
        "late": "no Z since {since}, and no sign since {silent}",
        "fork.id": "Z {z} came a second time with other figures ({id})",
        "fork.number": "two closures have the number Z {z}: {other} and {id}",
        "fork.previous": "Z {other} and Z {z} follow the same closure: the ledger was put back",
        "fork.behind": "the box knows of Z {knows} only, headquarters has Z {z}: the ledger was put back",
        "fork.ledger": "the box has a new ledger ({ledger}); headquarters holds up to Z {z} of another one",
        "fork.head": "the box has another head ({has}) for Z {z} than headquarters ({held})",
        "chain.head": "the head of Z {z} is not that of its figures",
        "chain.previous": "Z {z} does not follow the one before it (names {has}, held {held})",
        "counters.sum": "Z {z}: the counters grew by {grown}, the number of invoices is {told}",
        "counters.down": "Z {z}: the counters {counter} went down",
        "counters.opening": "Z {z} does not begin with the counters that the one before it ends with",
        "counters.fvc": "Z {z} begins with FVC {start}, the one before it ends with {end}",
        "unexplained": "Z {z}: {count} invoices on the machine that the ledger cannot explain",
        "unexplained.one": "Z {z}: one invoice on the machine that the ledger cannot explain",
        "tax-server": "the machine has not reached the tax server for {days} days",
        "version": "version {has}, the newest is {newest}",
        "clock.box": "the box's clock is {seconds} s off",
        "refused": "with this shop's NATS key came messages on {day} that are no closure and no presence ({reason}): a fault of the box, or a stolen key",
        "clock.machine": "the machine's clock is {seconds} s off the box's",
    },
}


def sentence(kind: Kind, facts: Facts, language: Language) -> str:
    """What was found; the values in it are in `facts`."""
    what = facts.get("what")
    name = f"{kind}.{what}" if what else kind
    if (name == "gap" and facts["first"] == facts["last"]) or (name == "unexplained" and facts["count"] == 1):
        name += ".one"
    return _SENTENCES[language][name].format_map(facts)
