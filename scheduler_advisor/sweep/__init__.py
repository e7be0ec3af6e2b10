"""Many replays of one workload: policies and seeds, here, in a process pool, or on Dask."""
