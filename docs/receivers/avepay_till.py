"""A sale with the published client, unchanged, at a box (docs/clients.md)."""

import os

from avepay.mcf import AvePay

avepay = AvePay(api_key=os.environ["MCFD_KEY"], base_url=os.environ["MCFD_URL"], isf="1")  # or AVEPAY_BASE_URL
mcf = avepay.mcf("EL02000015-1")
receipt = mcf.certify(
    number="FV-2026-0001",
    operator={"id": 1, "name": "Awa"},
    customer={"type": "CC"},
    items=[{"name": "Riz 25kg", "tax_group": "B", "unit_price": 15000, "quantity": 1}],
    payments=[{"method": "cash", "amount": 15000}],
)
print(receipt.sig, receipt.total_ttc, mcf.info().mode)
