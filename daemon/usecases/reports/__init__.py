"""Reports, journal, the closing of a period, looking at a machine."""
