"""X, Z and A again, from nothing but the journal's JSON Lines: `python recomputed.py < journal.jsonl` prints every Z.

By an auditor's reading of the rules; it shares no line with mcfd."""

import json
import sys
from collections import Counter
from decimal import ROUND_HALF_UP, Decimal

LABELS = {"E": "Espèces", "V": "Virement", "C": "Carte bancaire", "M": "Mobile money", "B": "Chèque", "A": "Autre"}
PSVB = {"A": 2, "B": 1, "C": Decimal("0.2"), "D": 0}
CREDIT = ("FA", "EA")


def half_up(value):
    return int(value.quantize(Decimal(1), ROUND_HALF_UP))


NATURES = {
    "COR": "Correction",
    "RAN": "Annulation",
    "RAM": "Avoir suite reprise biens/services",
    "RRR": "Remise, ristourne, rabais",
}


def vat(items):
    """(group, ht, tva, ttc) of the items of one invoice: VAT is taken on the group's total, rounded half up."""
    sums = Counter()
    for item in items:
        sums[item["taxGroup"], Decimal(str(item["taxRate"]))] += item["amountTtc"]
    hts = {key: half_up(Decimal(ttc) * 100 / (100 + key[1])) for key, ttc in sums.items()}
    return [(key[0], hts[key], ttc - hts[key], ttc) for key, ttc in sums.items()]


def report(records):
    """What X, Z and A say of these records; credit notes are positive by type, and taken off everywhere else."""
    types, pairs, groups, paid, psvb, natures = {}, {}, {}, Counter(), {}, {}
    specific = incomplete = 0
    for record in records:
        if record["state"] != "certified":
            incomplete += not record["reason"].startswith("not sent")
            continue
        kind, request, sign = record["invoiceType"], record["request"], -1 if record["invoiceType"] in CREDIT else 1
        types.setdefault(kind, Counter()).update(n=1, ttc=record["totalTtc"])
        if nature := request.get("creditNoteNature"):
            natures.setdefault(nature, Counter()).update(count=1, total=record["totalTtc"])
        # HT: the machine's sums of unrounded prices.
        result, ttc_prices = (
            record["receipt"],
            request["priceMode"] == "TTC",
        )
        taxes = [(t["group"], t["ht"], t["tva"], t["ttc"]) for t in result["taxDetails"]]
        for group, ht, tva, ttc in vat(request["items"]) if ttc_prices else taxes:
            pairs.setdefault((kind, group), Counter()).update(ht=ht, tva=tva, ttc=ttc)
            groups.setdefault(group, Counter()).update(ht=sign * ht, tva=sign * tva, ttc=sign * ttc)
        for payment in request["payments"]:
            paid[payment["method"]] += sign * payment["amount"]
        specific += sign * sum(item.get("specificTax", 0) for item in request["items"])
        if letter := request.get("psvbGroup"):
            goods = [item for item in request["items"] if item["itemType"] in ("LOCBIE", "IMPBIE")]
            base = sum(item["amountTtc"] for item in goods) if ttc_prices else result["psvb"]["base"]
            amount = half_up(Decimal(base) * PSVB[letter] / 100)
            psvb.setdefault(letter, Counter()).update(base=sign * base, amount=sign * amount)
    credits_ = [types[kind] for kind in CREDIT if kind in types]
    return {
        "certs_count": sum(t["n"] for t in types.values()),
        "total_ttc": sum(g["ttc"] for g in groups.values()),
        "total_ht": sum(g["ht"] for g in groups.values()),
        "total_tva": sum(g["tva"] for g in groups.values()),
        "by_group": [{"group": g, **{k: groups[g][k] for k in ("ht", "tva", "ttc")}} for g in sorted(groups)],
        "by_type": [{"invoice_type": t, "count": types[t]["n"], "total_ttc": types[t]["ttc"]} for t in sorted(types)],
        "by_type_and_group": [{"invoice_type": t, "group": g, **pairs[t, g]} for t, g in sorted(pairs)],
        "by_payment": [{"method": m, "label": LABELS[m], "amount": paid[m]} for m in sorted(paid) if paid[m]],
        "credit_notes": {"count": sum(c["n"] for c in credits_), "total": sum(c["ttc"] for c in credits_)},
        "by_nature": [{"nature": n, "label": w, **natures[n]} for n, w in NATURES.items() if n in natures],
        "specific_tax": specific,
        "psvb": [{"group": g, "rate": float(PSVB[g]), **psvb[g]} for g in sorted(psvb) if any(psvb[g].values())],
        "incomplete": incomplete,
    }


if __name__ == "__main__":
    journal = [json.loads(line) for line in sys.stdin]
    for number in sorted({record["zNumber"] or 0 for record in journal} - {0}):
        json.dump(report([r for r in journal if r["zNumber"] == number]), sys.stdout)
