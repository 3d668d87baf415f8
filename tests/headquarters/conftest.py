from support.hq.store import box, cluster, made_database, made_file, made_url, new_store, new_url, store

__all__ = ["box", "cluster", "made_database", "made_file", "made_url", "new_store", "new_url", "store"]
