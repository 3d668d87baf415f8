"""The ways in: HTTPS and JetStream, both through the same reception, into the same store."""
