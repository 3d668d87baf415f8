"""The dossier of homologation: what the law asks clause by clause, test cases on the connected machine, manuals; all in French."""
