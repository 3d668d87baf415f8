"""Replies of a machine, one frozen value for each command of protocol section 3; `read` raises Nonsense.

Money is in hundredths of a franc if a machine may send cents (subtotal, line), else in whole XOF; rates are in
hundredths of a percent; times are the machine's 14 digits, counters as in the protocol. `specific` is the specific tax
(excise). Only what exactly-once needs is mandatory (NIM, counters, code): fields may be missing at the end, more may
follow, and numbers are read in any notation (`numbers`).
"""
