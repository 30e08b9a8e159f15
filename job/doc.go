// Package job divides work over a whole dataset into shards that any machine may do, in any order and more than once.
//
// A job is a folder. Plan writes job.json, which says what is to be done and which samples each shard has; nothing in
// the folder changes afterwards. Run does one shard and adds its result, a file named by its content. Merge joins the
// results. Who runs the shards is not the job's matter: a loop, a pool, an array of a cluster's scheduler.
//
// The merged result is the same, bit for bit, for any number of shards, any order and any repeats, because the results
// of shards merge exactly and a shard that is done twice gives the same bytes. Merge refuses what does not fit: a shard
// without a result, and one with results that differ.
//
//	job.json
//	results/SHARD.SHA256.json    SHARD is its number; SHA256 are the first 32 hexadecimal digits of the content's hash
//	metrics/SHARD.json           how long a shard took, where it ran; not part of the result
package job
