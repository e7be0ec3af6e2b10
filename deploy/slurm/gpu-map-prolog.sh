#!/bin/sh
# For slurm.conf, with PrologFlags=Alloc: Prolog=/etc/slurm/gpu-map-prolog.sh
# Writes which job holds which GPU, one file per GPU, named by its UUID, one "jobid uid" per line.
# The agent reads it: a job that holds a GPU and runs nothing on it is otherwise known to the
# scheduler only. From Slurm 25.11 the variables hold UUIDs. Before, they hold numbers, and what a
# number means is this site's own knowledge: say it in UNSTRAND_GPU_NUMBERS, "nvml" (gres.conf with
# AutoDetect=nvml) or "minor" (gres.conf with File=/dev/nvidia0 and so on). Without it numbers are
# left out rather than guessed. It never holds a job up: the exit status is 0 whatever happens.
map="${UNSTRAND_GPU_MAP:-/run/unstrand/gpus}"
uuid_of_minor() {
  for folder in "${UNSTRAND_NVIDIA_PROC:-/proc/driver/nvidia/gpus}"/*; do
    grep -q "^Device Minor:[[:space:]]*$1\$" "$folder/information" 2>/dev/null || continue
    sed -n 's/^GPU UUID:[[:space:]]*//p' "$folder/information"
  done
}
uuid_of() {
  case "$1" in
    GPU-* | MIG-*) echo "$1" ;;
    *[!0-9]* | "") ;;
    *)
      case "${UNSTRAND_GPU_NUMBERS:-}" in
        nvml) nvidia-smi -i "$1" --query-gpu=uuid --format=csv,noheader 2>/dev/null ;;
        minor) uuid_of_minor "$1" ;;
      esac
      ;;
  esac
}
mkdir -p "$map" || exit 0
for name in $(echo "${SLURM_JOB_GPUS:-}" | tr ',' ' '); do
  uuid="$(uuid_of "$name")"
  [ -n "$uuid" ] && echo "${SLURM_JOB_ID:?} ${SLURM_JOB_UID:-}" >>"$map/$uuid"
done
exit 0
