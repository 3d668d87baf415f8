-- What is missing and what is wrong in the table of closures.py; all but `money` give no row when all is well.

-- missing: gaps from Z 1 up to the last one that came
WITH RECURSIVE expected (nim, mode, z, last) AS (
    SELECT nim, mode, 1, max(z) FROM closure GROUP BY nim, mode
    UNION ALL SELECT nim, mode, z + 1, last FROM expected WHERE z < last
)
SELECT nim, mode, z FROM expected
WHERE NOT EXISTS (SELECT 1 FROM closure c WHERE c.nim = expected.nim AND c.mode = expected.mode AND c.z = expected.z)
ORDER BY nim, mode, z;

-- silent: shops without a closure for 36 hours, also those that never sent one
SELECT shop.nim, max(closure.at) AS last FROM shop LEFT JOIN closure ON closure.nim = shop.nim AND closure.mode = 'live'
GROUP BY shop.nim
HAVING coalesce(unixepoch(max(closure.at)), shop.since) < unixepoch('now') - 36 * 3600
ORDER BY shop.nim;

-- forks: one number, or one closure before it, twice: a ledger was put back, or altered
SELECT nim, mode, z, count(*) AS times FROM closure GROUP BY nim, mode, z HAVING count(*) > 1
UNION SELECT nim, mode, max(z), count(*) FROM closure WHERE head <> '' GROUP BY nim, mode, previous HAVING count(*) > 1
ORDER BY nim, mode, z;

-- chain: closures that do not continue the one before
SELECT c.nim, c.mode, c.z FROM closure c JOIN closure b ON b.nim = c.nim AND b.mode = c.mode AND b.z = c.z - 1
WHERE c.head <> '' AND b.head <> ''
GROUP BY c.id, c.head HAVING sum(c.previous = b.head) = 0
ORDER BY c.nim, c.mode, c.z;

-- counters: the machine counted more or less than the shop sold, or invoices that nobody made
SELECT nim, mode, z, moved, counted, unexplained FROM closure
WHERE moved <> counted OR unexplained > 0 ORDER BY nim, mode, z;

-- money: a day of each shop; of two closures with one number (a fork) the one that came first counts, and of two after
-- the same one the later, if nothing is unexplained: a ledger that was put back has closed the same sales again
SELECT nim, date(at) AS day, sum(total) AS total FROM closure c
WHERE mode = 'live' AND NOT EXISTS (
    SELECT 1 FROM closure first WHERE first.nim = c.nim AND first.mode = c.mode AND first.z = c.z AND first.rowid < c.rowid
) AND NOT EXISTS (
    SELECT 1 FROM closure again WHERE again.nim = c.nim AND again.mode = c.mode AND again.ledger = c.ledger
    AND again.previous = c.previous AND c.head <> '' AND again.z > c.z AND again.unexplained = 0
)
GROUP BY nim, day ORDER BY nim, day;
