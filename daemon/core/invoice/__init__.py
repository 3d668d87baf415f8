"""What a till sent becomes an invoice, or the faults of it: items, payments, taxes."""
