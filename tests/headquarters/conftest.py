from support.hq.store import box, cluster, copied_database, copied_file, database_url, new_store, new_url, store

__all__ = ["box", "cluster", "copied_database", "copied_file", "database_url", "new_store", "new_url", "store"]
