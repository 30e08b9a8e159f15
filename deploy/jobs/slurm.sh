#!/bin/sh
# A job of 200 shards as an array of Slurm. The folder of the job is on a file system that all nodes share.
#
#   chaski job plan stats -o /shared/job --shards 200 /shared/train.parquet
#   sbatch slurm.sh
#   chaski job status /shared/job && chaski job merge -o stats.json /shared/job
#
# Shards that are done cost nothing: submit it again for those that failed.
#SBATCH --job-name=chaski
#SBATCH --array=0-199%50
#SBATCH --cpus-per-task=4
#SBATCH --mem=4G
#SBATCH --requeue
exec chaski job run --retry 3 --workers "${SLURM_CPUS_PER_TASK:-0}" --shard "$SLURM_ARRAY_TASK_ID" /shared/job
