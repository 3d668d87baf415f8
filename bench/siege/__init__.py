"""`make siege`: a real daemon under attack, and a till that must continue to certify (docs/security.md has the table).
Each attack is a process with a time limit, alone and then all together, over plain TCP and over TLS."""
