// Package job divides work over many files into shards that any machine may do, in any order and more than once.
//
// A job is a folder, of a file system or of an object store. Plan writes job.json, which describes the work and the
// items of each shard. Afterwards only the records of runs change. Run does one shard and adds its result, a file
// named by its content. Merge joins the results. Anything can run the shards: a loop, a pool, an array job of a
// cluster's scheduler.
//
// The work itself is a Kind: package kinds has the kinds of the command. The merged output is the same, bit for bit,
// for any number of shards, any order and any repeats, because a shard that is done twice gives the same bytes and a
// kind merges results exactly. Merge returns an error for a shard without a result, and for one whose results differ.
//
//	job.json
//	items.SHA256            what the shards have, if they have more than numbers
//	results/SHARD.SHA256    SHARD is its number; SHA256 are the first 32 hexadecimal digits of the content's hash
//	runs/SHARD.json         the last run of a shard: its state, its error, how long it took, where, and what it read
package job
