package flags

import (
	"errors"
	"strconv"

	"github.com/spf13/pflag"

	"github.com/chaski-eo/chaski/loader"
)

// AddMemory adds --memory, which has a default by the batch.
func AddMemory(fl *pflag.FlagSet, memory *int64, what string) {
	fl.Int64Var(memory, "memory", 0, "memory of all "+what+" together, in bytes (default 0: four batches, at least 256 MiB and at most a quarter of the machine's memory)")
}

// AddMaxChunk adds --max-chunk, the limit that errors call max_chunk.
func AddMaxChunk(fl *pflag.FlagSet, limit *int) {
	*limit = loader.DefaultMaxChunkBytes
	fl.Var((*maxChunk)(limit), "max-chunk", "largest decoded chunk (tile, strip or frame) that is read, in `BYTES`; those over 64 MiB are decoded by few workers at a time")
}

// maxChunk is a flag of at least one byte.
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
