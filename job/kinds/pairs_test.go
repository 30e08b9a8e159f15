package kinds

import (
	"encoding/json"
	"testing"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/job"
	"github.com/chaski-eo/chaski/loader/survey"
)

// TestEqualPairs: of pairs with equal shifts, those of the first samples are listed, in whatever shards they are.
func TestEqualPairs(t *testing.T) {
	part := func(rows ...int64) *survey.PairReport {
		r := &survey.PairReport{Samples: int64(len(rows)), Pairs: int64(len(rows)), Misplaced: int64(len(rows))}
		for _, row := range rows {
			r.Worst = append(r.Worst, survey.Pair{Verdict: survey.Misplaced, Row: row, Other: "mask",
				ByPlace: &survey.PixelShift{Y: 3, X: 4}})
		}
		return r
	}
	for _, parts := range [][]*survey.PairReport{
		{part(0, 1), part(2, 3), part(4)}, {part(4), part(2, 3), part(0, 1)}, {part(0), part(1, 2), part(3, 4)},
	} {
		var total survey.PairReport
		for _, p := range parts {
			total.Add(p, 3)
		}
		if total.Samples != 5 || total.Pairs != 5 || total.Misplaced != 5 || len(total.Worst) != 3 {
			t.Fatalf("%+v", total)
		}
		for i, p := range total.Worst {
			if p.Row != int64(i) {
				t.Errorf("pair %d is of row %d", i, p.Row)
			}
		}
	}
}

// FuzzPairs: any tally is refused with a kind, or counts the samples of the shard and lists no more pairs than it may.
func FuzzPairs(f *testing.F) {
	f.Add([]byte(`{"report":{"samples":3,"pairs":3,"misplaced":1,"worst":[{"verdict":"misplaced","row":1}]}}`))
	f.Add([]byte(`{"report":{"samples":3,"pairs":3,"unplaced":3,"worst":null}}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		k := &Pairs{Worst: 2}
		if _, err := k.Check(b, job.Shard{Count: 3}); err != nil {
			if fault.KindOf(err) == 0 {
				t.Fatalf("no kind: %v", err)
			}
			return
		}
		var tally pairsTally
		if err := json.Unmarshal(b, &tally); err != nil || tally.Report.Samples != 3 || len(tally.Report.Worst) > 2 {
			t.Fatalf("%v, %s", err, b)
		}
	})
}
