from support.hq.store import box, cluster, new_url, store

__all__ = ["box", "cluster", "new_url", "store"]
