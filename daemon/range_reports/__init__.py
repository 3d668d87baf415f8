"""Reports of a range of time, each once: routes, paper and command follow"""
