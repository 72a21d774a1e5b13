"""The command `seglog`: one file per command, the only importer of click and rich."""
