"""Who holds a GPU and who uses it: processes and devices to jobs, pods, containers and users."""
