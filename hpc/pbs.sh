#!/usr/bin/env bash
#PBS -N @NAME@
#PBS -J @ARRAY@
#PBS -l select=@RANKS@:ncpus=1:mpiprocs=1
#PBS -l walltime=@TIME@
#PBS -r y
#PBS -j oe
#PBS -o @FOLDER@/
@SITE@

@SUMMARY@

# A stopped task is submitted again alone: again.sh is this script without the array, and TASK is set.
index=${TASK:-${PBS_ARRAY_INDEX:?is not set by this PBS: submit each seed by itself}}
exec bash "@CHECKOUT@/hpc/job.sh" "@FOLDER@/tasks.txt" "$index" @RANKS@ qsub -v "TASK=$index" "@FOLDER@/again.sh"
