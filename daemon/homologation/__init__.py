"""The dossier of homologation, in French."""
