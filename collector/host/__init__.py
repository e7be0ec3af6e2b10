"""The node beside its GPUs: CPU, memory, pressure and network, of it and of each job on it."""
