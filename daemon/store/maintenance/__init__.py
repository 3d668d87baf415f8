"""The ledger as a file: backup, restore, verify, recomputation, retention."""
