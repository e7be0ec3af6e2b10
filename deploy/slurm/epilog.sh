#!/bin/sh
# For slurm.conf: EpilogSlurmctld=/etc/slurm/unstrand-epilog.sh
# Writes one line per finished GPU job: what it held, used, waited for and cost. The service must be
# reachable at UNSTRAND_SERVER. It never fails a job: whatever happens, the exit status is 0.
: "${UNSTRAND_SERVER:=http://127.0.0.1:8501}"
export UNSTRAND_SERVER
unstrand job "${SLURM_JOB_ID:?}" --line >>"${UNSTRAND_EPILOG_LOG:-/var/log/unstrand-jobs.log}" 2>&1
exit 0
