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
	PositiveVar(fl, limit, "max-chunk",
		"decode chunks (tiles, strips or frames) of up to this size whole, in `BYTES`; larger ones are decoded in "+
			"pieces of rows, or refused if their codec cannot do that; only a few workers at a time decode whole "+
			"chunks over 64 MiB")
}

// positive is the value of a flag whose default is 0 or stands for a 0 of the engine, and that a user may not set to 0:
// only the parser of flags can tell the two apart.
type positive int

func (p *positive) String() string { return strconv.Itoa(int(*p)) }

func (*positive) Type() string { return "int" }

func (p *positive) Set(s string) error {
	n, err := strconv.Atoi(s)
	if err == nil && n < 1 {
		err = errors.New("it must be at least 1")
	}
	if err == nil {
		*p = positive(n)
	}
	return err
}

// PositiveVar adds a flag for a number of at least 1, whose default is the present value of to.
func PositiveVar(fl *pflag.FlagSet, to *int, name, usage string) {
	fl.Var((*positive)(to), name, usage)
}
