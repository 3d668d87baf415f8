"""The fiscal rules, without I/O: invoices, machine, ledger, reports."""
