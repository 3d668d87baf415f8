"""Commands about who may do what: keys, people, the audit log."""
