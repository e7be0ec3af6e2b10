"""Slurm's own words into facts: pure parsers, one noun per file, and `importer` on top."""
