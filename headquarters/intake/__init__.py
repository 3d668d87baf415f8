"""Ingress by HTTPS and JetStream, both with the same verification and storage."""
