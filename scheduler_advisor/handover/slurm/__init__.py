"""A change of policy as slurm.conf, topology.conf and gres.conf lines and sacctmgr commands."""
