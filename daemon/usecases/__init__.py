"""Use cases: certify, report, close, deliver."""
