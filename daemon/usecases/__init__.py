"""What can be asked of the service, step by step, over ports: certify, report, close, deliver."""
