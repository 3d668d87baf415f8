"""Who asks and how often: keys, wrong keys, streams and exports at a time."""
