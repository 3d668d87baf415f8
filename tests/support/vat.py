"""Examples of fiscal-rules.md, read twice: by our own arithmetic, and by the simulated machine's."""

TAKEN_OUT = [
    (15_000, 1800, 12_712, 2288),
    (1000, 1800, 847, 153),
    (11, 1000, 10, 1),
    (500, 0, 500, 0),
    (1, 1800, 1, 0),
    (3, 1800, 3, 0),
    (4, 1800, 3, 1),
    # exactly a half goes up: 3 * 100 / 120 = 2.5, 3 * 100 / 200 = 1.5, 1 * 100 / 200 = 0.5
    (3, 2000, 3, 0),
    (3, 10_000, 2, 1),
    (1, 10_000, 1, 0),
    (10**12, 1800, 847_457_627_119, 152_542_372_881),
]
"""`ttc`, `rate` in hundredths of a percent, `ht`, `tva`: of a total with VAT."""

PUT_ON = [
    (1000, 1800, 180),
    (12_712, 1800, 2288),
    (75, 1800, 14),
    (25, 1800, 5),
    (25, 1000, 3),
    (24, 1000, 2),
    (1, 1800, 0),
    (3, 1800, 1),
    (7, 0, 0),
]
"""`ht`, `rate`, `tva`: on a total without."""
