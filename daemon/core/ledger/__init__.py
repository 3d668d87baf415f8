"""What is kept: attempt and record, book, closure, chain, totals, the verdict on a doubtful attempt."""
