"""What the ledger stores: attempt and record, book, closure, chain, totals, the verdict on a doubtful attempt."""
