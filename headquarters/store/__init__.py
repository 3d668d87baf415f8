"""What headquarters keeps, on SQLite or PostgreSQL behind one contract; the only place with SQL."""
