"""Batch jobs for SLURM and PBS: `python -m hpc.submit --help`."""
