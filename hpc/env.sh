# Values that differ between sites, read by hpc/submit.py and by every job. Edit them, or export them before submitting.
# shellcheck shell=bash

TDPO_MODULES="${TDPO_MODULES:-}"              # environment modules to load, such as "gcc/12 openmpi/5"
TDPO_PYTHON="${TDPO_PYTHON:-.venv/bin/python}" # python that has the package; relative paths start at the checkout
TDPO_MPIRUN="${TDPO_MPIRUN:-}"                # mpirun; empty: the one beside that python, else the site's
TDPO_MPIRUN_OPTIONS="${TDPO_MPIRUN_OPTIONS:-}" # such as "--bind-to none" where ranks may exceed cores
TDPO_PARTITION="${TDPO_PARTITION:-}"          # SLURM's partition, PBS's queue; empty: the default one
TDPO_ACCOUNT="${TDPO_ACCOUNT:-}"              # account or project to charge; empty: the default one
TDPO_SCRATCH="${TDPO_SCRATCH:-${TMPDIR:-/tmp}}" # fast local folder of a node, for caches
