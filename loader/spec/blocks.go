package spec

import (
	"errors"
	"fmt"
)

// Blocks is an order that reads a stored chunk with many samples once: blocks of rows that follow each other are
// permuted, and the samples of the blocks of a pool are permuted together (package shuffle, Blocks).
type Blocks struct {
	// Rows is the number of rows of a block. Default: as many as a chunk of an array holds; of files and containers, as
	// many as have 4 MiB of samples.
	Rows int64 `json:"rows,omitempty"`
	// Pool is the number of blocks that a batch is drawn from. Default: eight for each sample of a global batch. Where
	// it is a multiple of the batch size, each row of a batch has blocks of its own: a rank reads no block of another,
	// and the variance of a batch is the one in a full permutation, whatever rows are sorted by.
	Pool int `json:"pool,omitempty"`
}

// validate checks the blocks of a spec; nil is right.
func (b *Blocks) validate(s *Spec) error {
	switch {
	case b == nil:
		return nil
	case !s.Shuffle:
		return errors.New("blocks are given, and shuffle is false: they are an order of shuffled samples")
	case s.Sampler.Traits().Tiles || s.Sampler.Traits().Ground:
		return fmt.Errorf("blocks are given, and the sampler %q has an order of its own", s.Sampler.Kind)
	case b.Rows < 0:
		return wrong("blocks.rows", b.Rows, "it must be at least 0")
	case b.Pool < 0:
		return wrong("blocks.pool", b.Pool, "it must be at least 0")
	}
	return nil
}
