"""Storage of headquarters on SQLite or PostgreSQL with one interface; the only package with SQL."""
