-- A report names each ISF of its period: a look-up for each ISF, and no pass over the certifications.
DROP INDEX certification_isf;
CREATE INDEX certification_isf ON certification (book_id, isf, seq) WHERE state = 'certified' AND isf IS NOT NULL;
