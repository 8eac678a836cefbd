"""The gate: a configuration for a machine that holds a live grant, and nothing for anybody else."""
