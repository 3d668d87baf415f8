"""Invoices of a wholesaler: goods with bar codes, a business customer; varied, and the same ones in every run.

On the line one of them with one item takes six commands and about 680 bytes, each item more about 110.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import msgspec

GOODS = (
    "Riz parfumé 25 kg", "Riz local Bagré 5 kg", "Sucre en poudre 1 kg", "Huile de coton 5 L", "Huile d'arachide 1 L",
    "Farine de blé 50 kg", "Lait concentré sucré 1 kg", "Lait en poudre 400 g", "Café soluble 200 g", "Thé vert 250 g",
    "Pâtes alimentaires 500 g", "Tomate concentrée 2,2 kg", "Savon de Marseille 400 g", "Lessive en poudre 500 g",
    "Eau minérale 1,5 L ×6", "Bière blonde 65 cl", "Jus de bissap 50 cl", "Jus de mangue 1 L", "Biscuits secs 300 g",
    "Sardines à l'huile 125 g", "Thon entier 185 g", "Mayonnaise 500 ml", "Cube bouillon ×60", "Sel iodé 1 kg",
    "Beurre de karité 250 g", "Mil décortiqué 10 kg", "Maïs blanc 50 kg", "Haricots niébé 5 kg", "Sésame grillé 500 g",
    "Poulet bicyclette", "Œufs plateau de 30", "Pain de mie complet", "Yaourt nature ×8", "Fromage à tartiner ×16",
    "Ciment CPA 45 50 kg", "Fer à béton 10 mm", "Tôle bac alu 35/100", "Peinture à eau 20 kg", "Clous 80 mm 1 kg",
    "Câble électrique 2,5 mm² 100 m", "Ampoule LED 9 W", "Pile LR6 ×4", "Torche solaire", "Cadenas 50 mm",
)  # fmt: skip
BUYERS = (
    "SARL Faso Distribution", "Ets Ouédraogo & Frères", "Pharmacie Wend-Panga", "Quincaillerie du Plateau",
    "Alimentation Nabonswendé", "Hôtel Les Palmiers SA", "Restaurant Le Verdoyant", "Coopérative Sidwaya", "BTP Sahel SARL",
)  # fmt: skip
STREETS = ("Avenue Kwamé Nkrumah", "Rue de la Chance, Gounghin", "Boulevard France-Afrique", "Secteur 15, Ouaga 2000")
GROUPS = "BBBBBBBBAAC"
METHODS = "EEEEEEMMMCVB"
WEIGHTS = (0.25, 0.5, 0.75, 1.5, 2.25)


def invoice(number: str, items: int, dice: random.Random, *, walk_in: bool = False) -> dict[str, Any]:
    """A sale that any till could have sent: whole amounts, one payment; to a company, or to a customer of whom nothing is known."""
    lines = [_item(dice) for _ in range(items)]
    total = sum(line["amountTtc"] for line in lines)
    return {
        "invoiceNumber": number,
        "invoiceType": "FV",
        "operatorId": f"OP-{dice.randrange(1, 40):03d}",
        "operatorName": dice.choice(("Awa Compaoré", "Issouf Sawadogo", "Mariam Traoré", "Comptoir principal 2")),
        **({} if walk_in else {"customer": _customer(dice)}),
        "items": lines,
        "payments": [{"method": dice.choice(METHODS), "amount": total}],
    }


def _customer(dice: random.Random) -> dict[str, str]:
    number = dice.randrange(10**8)
    return {
        "clientType": dice.choice(("PM", "PM", "PC")),
        "ifu": f"{number:08d}{dice.choice('ABCDEFGHKLMNPRSTUVWXY')}",
        "name": dice.choice(BUYERS),
        "address": f"{dice.randrange(1, 13):02d} BP {dice.randrange(100, 7000)} Ouagadougou {dice.randrange(1, 13):02d}, {dice.choice(STREETS)}",
        "phone": f"+226 {dice.choice(('25', '70', '76'))} {number % 10**6:06d}",
        "email": f"compta{dice.randrange(100)}@{dice.choice(('fasonet', 'onatel', 'exemple'))}.bf",
        "rccm": f"BF-OUA-01-{dice.randrange(2008, 2026)}-B12-{dice.randrange(10**5):05d}",
    }


def _item(dice: random.Random) -> dict[str, Any]:
    price = dice.randrange(1, 400) * 100
    quantity = dice.choice(WEIGHTS) if dice.random() < 0.1 else dice.choice((1, 1, 1, 1, 2, 2, 3, 4, 6, 12))
    return {
        "name": dice.choice(GOODS),
        "code": f"613{dice.randrange(10**10):010d}",
        "taxGroup": dice.choice(GROUPS),
        "unitPrice": price,
        "quantity": quantity,
        "amountTtc": round(price * quantity),
    }


def bodies(items: int, *, series: str = "FV", walk_in: bool = False) -> Iterator[bytes]:
    """Encoded requests without end, numbered as a till numbers them."""
    dice = random.Random(f"{series} {items}")
    count = 0
    while True:
        count += 1
        yield msgspec.json.encode(invoice(f"{series}-2026-{count:06d}", items, dice, walk_in=walk_in))
