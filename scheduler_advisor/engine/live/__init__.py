"""The driver for policies whose order or limits depend on what is running: shares, quotas,
preemption that takes time. `run.py` is its door; `reference.py` the same told slowly."""
