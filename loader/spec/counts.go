package spec

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/chaski-eo/chaski/shuffle"
)

// ErrPerBatch is returned if the shares of a mixture cannot be exact in a batch, because the
// mixture around it does not give it a fixed number of rows.
var ErrPerBatch = errors.New(
	"per_batch needs per_batch, and weights in place of a temperature, of the mixture around it")

// ErrOneSource is returned if the batches of a mixture cannot be of one source, because the mixture around it has mixed
// ones.
var ErrOneSource = errors.New(`batches "one source" needs the same of the mixture around it`)

// SetCounts sets the counts of the sources of a mixture, from their weights or from the
// temperature. They sum to total. It keeps counts that the spec has. sources are only
// needed for a temperature.
func (s *Source) SetCounts(sources []shuffle.Source, total int64) error {
	weights := make([]float64, len(s.Sources))
	given := int64(0)
	for i := range s.Sources {
		weights[i] = cmp.Or(s.Sources[i].Weight, 1)
		given += s.Sources[i].Count
	}
	// A completed spec has counts, and they must stay: the order depends on them. Package shuffle
	// checks their sum.
	if given != 0 {
		return nil
	}
	if s.Temperature != 0 {
		sizes, err := Lengths(sources)
		if err != nil {
			return err
		}
		if weights, err = shuffle.Temperature(sizes, s.Temperature); err != nil {
			return err
		}
	}
	counts, err := shuffle.Apportion(total, weights)
	for i := range counts {
		s.Sources[i].Count, s.Sources[i].Weight = counts[i], 0
	}
	return err
}

// Lengths returns the number of samples that an epoch of each source has.
func Lengths(sources []shuffle.Source) ([]int64, error) {
	out := make([]int64, len(sources))
	for i, s := range sources {
		plan, err := shuffle.NewPlan(shuffle.Spec{Source: s, Batch: 1}) // Sampler.Sides changes no length
		if err != nil {
			return nil, within(fmt.Sprintf("source %d", i), err)
		}
		out[i] = plan.Len()
	}
	return out, nil
}
