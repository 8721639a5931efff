#!/usr/bin/env bash
#SBATCH --job-name=@NAME@
#SBATCH --array=@ARRAY@
#SBATCH --ntasks=@RANKS@
#SBATCH --cpus-per-task=1
#SBATCH --time=@TIME@
#SBATCH --signal=B:USR1@@WARNING@
#SBATCH --requeue
#SBATCH --open-mode=append
#SBATCH --output=@FOLDER@/%a.log
@SITE@

@SUMMARY@

exec bash "@CHECKOUT@/hpc/job.sh" "@FOLDER@/tasks.txt" "$SLURM_ARRAY_TASK_ID" @RANKS@ \
    scontrol requeue "${SLURM_ARRAY_JOB_ID}_${SLURM_ARRAY_TASK_ID}"
