package survey

import (
	"context"

	"github.com/chaski-eo/chaski/loader/resources"
	"github.com/chaski-eo/chaski/loader/rows"
	"github.com/chaski-eo/chaski/loader/spec"
)

// PairsExtent returns the extent of Pairs of a spec. It refuses fields that Pairs refuses.
func PairsExtent(ctx context.Context, sp spec.Spec, o resources.Options) (e Extent, err error) {
	err = withPairs(ctx, sp, o, func(sp spec.Spec, _ resources.Options, t rows.Table, selected []uint32) error {
		e = Extent{chosen(t, selected), t.Fingerprint()}
		_, err := pairColumns(t, sp)
		return err
	})
	return e, err
}

// PairsPart is Pairs of count of the samples from first on. A dataset that has not the extent want is a fault of kind
// corrupt.
func PairsPart(ctx context.Context, sp spec.Spec, o resources.Options, po PairOptions, want Extent,
	first, count int64) (r *PairReport, err error) {
	err = withPairs(ctx, sp, o, func(sp spec.Spec, o resources.Options, t rows.Table, selected []uint32) error {
		err := want.check(Extent{chosen(t, selected), t.Fingerprint()}, sp, first, count)
		if err == nil {
			r, err = comparePairs(ctx, sp, o, t, selected, first, count, po)
		}
		return err
	})
	return r, err
}

// Add adds the results of other samples, and keeps the worst n pairs of both. The worst of all are among the worst of
// each part, and no two pairs are equal in the order of the list, so that one pass would have given the same result.
func (r *PairReport) Add(q *PairReport, n int) {
	r.Samples += q.Samples
	r.Pairs += q.Pairs
	r.Misplaced += q.Misplaced
	r.Unplaced += q.Unplaced
	r.Unreadable += q.Unreadable
	r.Worst = append(r.Worst, q.Worst...)
	r.cut(n)
}
