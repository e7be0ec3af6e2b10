"""The simulator's core: pure, importable anywhere, the same bytes on every machine."""
