#!/usr/bin/env bash
# Run one task of a job: job.sh TASKS_FILE INDEX RANKS COMMAND... Each line of TASKS_FILE has the arguments of one run.
#
# A warning from the scheduler (SIGUSR1 or SIGTERM) is passed on to mpirun as SIGUSR1, and by mpirun to every rank. The
# ranks write a checkpoint and exit with code 85. COMMAND then queues the task again, and it continues from the
# checkpoint. A task that is finished exits with code 0 at once.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1
tasks=$1 index=$2 ranks=$3
again=("${@:4}")
# shellcheck source=hpc/env.sh
source hpc/env.sh
if [ -n "$TDPO_MODULES" ]; then
    # shellcheck disable=SC2086  # a list of modules
    module load $TDPO_MODULES || exit 1
fi

line=$(sed -n "$((index + 1))p" "$tasks")
if [ -z "$line" ]; then
    echo "error: $tasks has no task $index" >&2
    exit 2
fi
read -r -a arguments <<< "$line"
read -r -a options <<< "$TDPO_MPIRUN_OPTIONS"
mpirun=$TDPO_MPIRUN
if [ -z "$mpirun" ]; then
    mpirun="$(dirname "$TDPO_PYTHON")/mpirun"
    [ -x "$mpirun" ] || mpirun=mpirun
fi
export OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 MKL_NUM_THREADS=1
# Compiled code stays on the node, off the file server. Numba executes what it finds there: the folder must be ours alone.
NUMBA_CACHE_DIR="$TDPO_SCRATCH/tdpo-numba-$(id -u)"
mkdir -m 700 "$NUMBA_CACHE_DIR" 2> /dev/null
if [ -L "$NUMBA_CACHE_DIR" ] || [ "$(stat -c '%u %a' "$NUMBA_CACHE_DIR")" != "$(id -u) 700" ]; then
    NUMBA_CACHE_DIR=$(mktemp -d) || exit 1
fi
export NUMBA_CACHE_DIR

say() { echo "$(date '+%F %T') task $index: $*"; }
say "$ranks rank(s) on $(hostname): ${arguments[*]}"
num_warnings=0
trap 'num_warnings=$((num_warnings + 1)); say "warned; asking the run to save and stop"; kill -USR1 "$job"' USR1 TERM
"$mpirun" -np "$ranks" "${options[@]}" "$TDPO_PYTHON" -m tdpo_baselines.run "${arguments[@]}" --resume &
job=$!
wait "$job"
code=$?
while [ "$num_warnings" -gt 0 ]; do # a warning ends the wait, not the run
    num_warnings=$((num_warnings - 1))
    wait "$job"
    code=$?
done
say "exit code $code"
if [ "$code" -eq 85 ]; then
    say "queues again: ${again[*]}"
    (cd "$(dirname "$tasks")" && "${again[@]}") || exit 1
fi
exit "$code"
