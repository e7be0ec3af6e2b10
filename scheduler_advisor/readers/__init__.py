"""Files as the simulator wants them: jobs, fleets, and pods with their nodes for packing."""
