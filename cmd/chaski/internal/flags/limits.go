package flags

import (
	"github.com/spf13/pflag"

	"github.com/chaski-eo/chaski/cmd/chaski/internal/console"
	"github.com/chaski-eo/chaski/loader/resources"
)

// AddMemory adds --memory, whose default depends on the size of a batch. what names the bounded
// things.
func AddMemory(fl *pflag.FlagSet, memory *int64, what string) {
	console.CountVar(fl, memory, "memory", 0, 0,
		"memory for all "+what+" together, in bytes (default 0: four batches, at least 256 MiB and at most a "+
			"quarter of the machine's memory)")
}

// AddMaxChunk adds --max-chunk, the limit that errors of the engine call max_chunk.
func AddMaxChunk(fl *pflag.FlagSet, limit *int) {
	console.CountVar(fl, limit, "max-chunk", resources.DefaultMaxChunkBytes, 1,
		"decode chunks (tiles, strips or frames) of up to this size whole, in `BYTES`; larger ones are decoded in "+
			"pieces of rows, or refused if their codec cannot do that; only a few workers at a time decode whole "+
			"chunks over 64 MiB")
}
