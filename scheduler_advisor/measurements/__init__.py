"""The measurements that every report carries: waits, spread, breakers, checkpoints, and more."""
