"""The node agent: reads GPUs in a child process, maps them to jobs, and delivers batches."""
