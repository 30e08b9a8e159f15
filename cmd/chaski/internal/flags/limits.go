package flags

import (
	"errors"
	"strconv"

	"github.com/spf13/pflag"

	"github.com/chaski-eo/chaski/loader/resources"
)

// AddMemory adds --memory, whose default depends on the size of a batch. what names the bounded
// things.
func AddMemory(fl *pflag.FlagSet, memory *int64, what string) {
	fl.Int64Var(memory, "memory", 0,
		"memory for all "+what+" together, in bytes (default 0: four batches, at least 256 MiB and at most a "+
			"quarter of the machine's memory)")
}

// AddMaxChunk adds --max-chunk, the limit that errors of the engine call max_chunk.
func AddMaxChunk(fl *pflag.FlagSet, limit *int) {
	*limit = resources.DefaultMaxChunkBytes
	fl.Var((*maxChunk)(limit), "max-chunk",
		"decode chunks (tiles, strips or frames) of up to this size whole, in `BYTES`; larger ones are decoded in "+
			"pieces of rows, or refused if their codec cannot do that; only a few workers at a time decode whole "+
			"chunks over 64 MiB")
}

// maxChunk is the value of --max-chunk. It is a type of its own because 0 would mean the default to
// the engine: only the parser of flags can tell that a user wrote 0.
type maxChunk int

func (m *maxChunk) String() string { return strconv.Itoa(int(*m)) }

func (*maxChunk) Type() string { return "int" }

func (m *maxChunk) Set(s string) error {
	n, err := strconv.Atoi(s)
	if err == nil && n < 1 {
		err = errors.New("it must be at least 1")
	}
	if err == nil {
		*m = maxChunk(n)
	}
	return err
}
