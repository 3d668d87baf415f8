"""What a machine answers, one frozen value per command of protocol section 3; `read` raises Nonsense.

Money is in hundredths of a franc where a machine may tell cents (the subtotal, a line), else in whole XOF; rates are in
hundredths of a percent; times are the machine's 14 digits, counters as in the protocol. `specific` stands for the specific
tax (excise). Only what exactly-once rests on is insisted on (the NIM, the counters, the code): fields may be missing at the
end, more may follow, and every number is read in any spelling (`numbers`).
"""
