#!/bin/sh
# A command in 200 shards as an array of Slurm. The output is in a store, or on a file system that all nodes share.
#
#   sbatch slurm.sh
#   chaski stats --merge 200 -o /shared/stats.json s3://bucket/train.parquet # once all are done
#
# Shards that are done are kept: submit it again for those that failed.
#SBATCH --job-name=chaski
#SBATCH --array=0-199%50
#SBATCH --cpus-per-task=4
#SBATCH --mem=4G
#SBATCH --requeue
exec chaski stats --shard "$SLURM_ARRAY_TASK_ID/200" --workers "${SLURM_CPUS_PER_TASK:-0}" \
  -o /shared/stats.json 's3://bucket/train.parquet'
