"""The whole box in one encrypted file: ledger, configuration, credentials, authority, people."""
