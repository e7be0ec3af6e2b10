-- One row = one shape of task distribution $1, the most frequent first.
SELECT cpu_milli, gpus, gpu_milli, gpu_models, jobs FROM task_distribution WHERE distribution = $1 ORDER BY place
