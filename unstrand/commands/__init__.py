"""The commands, one file per group. Each asks packages below and prints; none decides."""
