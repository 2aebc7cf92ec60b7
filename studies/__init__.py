"""Programs that repeat the claims of the READMEs; each is run as ``python -m studies.NAME``."""
