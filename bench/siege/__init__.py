"""`make siege`: a real daemon under attack, and a till that goes on certifying (docs/security.md has the table).

Each attack is a process of its own that runs for a bounded time, alone and then all together, over plain TCP and over TLS.
"""
