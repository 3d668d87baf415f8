"""First contact with a machine: what is assumed of it, asked of it, one line each (docs/first-contact.fr.md)."""
