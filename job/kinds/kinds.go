// Package kinds has the kinds of jobs of the command. Each has a file: how its work is divided, what a shard does,
// and how the results are merged to the output of a run without shards.
package kinds

import (
	"context"

	"github.com/chaski-eo/chaski/job"
)

// All are the kinds by their names.
var All = job.Kinds{
	convertName: func() job.Kind { return new(Convert) },
	indexName:   func() job.Kind { return new(Index) },
	makeName:    func() job.Kind { return new(Make) },
	statsName:   func() job.Kind { return new(Stats) },
	verifyName:  func() job.Kind { return new(Verify) },
	weightsName: func() job.Kind { return new(Weights) },
}

// Open opens the job in a folder.
func Open(ctx context.Context, folder string) (*job.Job, error) { return job.Open(ctx, folder, All) }

// Binary reports whether the output of a kind is not text.
func Binary(kind string) bool { return kind == indexName || kind == weightsName }
