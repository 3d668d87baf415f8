"""Commands about the box: setup, doctor, configuration, TLS, logs."""
