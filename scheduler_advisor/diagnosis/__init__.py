"""What holds a cluster back, from what was observed, before any policy is tried."""
