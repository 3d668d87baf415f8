"""SQLite: connections, the writer, migrations, lock, free space, faults. Knows no table."""
