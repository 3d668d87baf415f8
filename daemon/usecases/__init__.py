"""What can be asked of the service, step by step: certify, report, close, deliver."""
