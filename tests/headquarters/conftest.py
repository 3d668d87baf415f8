from support.hq.store import cluster, new_url, store

__all__ = ["cluster", "new_url", "store"]
