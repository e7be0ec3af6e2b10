#!/bin/sh
# For slurm.conf: Epilog=/etc/slurm/gpu-map-epilog.sh
# Takes this job out of the map that gpu-map-prolog.sh keeps. The exit status is 0 whatever happens:
# another one would drain the node.
map="${UNSTRAND_GPU_MAP:-/run/unstrand/gpus}"
for file in "$map"/GPU-* "$map"/MIG-*; do
  [ -f "$file" ] || continue
  left="$(grep -v "^${SLURM_JOB_ID:?}\( \|\$\)" "$file")"
  if [ -n "$left" ]; then
    printf '%s\n' "$left" >"$file.new" && mv "$file.new" "$file"
  else
    rm -f "$file"
  fi
done
exit 0
