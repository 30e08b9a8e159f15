package shuffle

import (
	"testing"
)

// TestPlanOfOneDatasetIsTheOrder holds a plan of one dataset to Order and Window, which came before it.
func TestPlanOfOneDatasetIsTheOrder(t *testing.T) {
	for _, shuffled := range []bool{true, false} {
		pl, err := NewPlan(Spec{Seed: 9, Shuffle: shuffled, Source: Source{Dataset: &Dataset{
			Items: 37, Sampler: Sampler{Kind: RandomWindow, PerItem: 3, H: 16, W: 24, AlignY: 2},
		}}})
		if err != nil {
			t.Fatal(err)
		}
		for epoch := range uint64(3) {
			o := NewOrder(9, epoch, 37*3, shuffled)
			for p := range pl.Len() {
				d := pl.At(epoch, p)
				if d.Sample != o.At(p) || d.Row != o.At(p)/3 || d.Epoch != epoch || d.Position != p || d.Transform != 0 {
					t.Fatalf("position %d: %+v", p, d)
				}
				y, x := Window(9, epoch, p, 100, 80, 16, 24, 2, 1)
				if b, _ := pl.Window(&d, 100, 80, nil); b != (Box{y, x, 16, 24}) {
					t.Fatalf("position %d: %+v", p, b)
				}
				if back := pl.Position(0, epoch, d.Sample); back != p {
					t.Fatalf("position %d comes back as %d", p, back)
				}
			}
		}
	}
}
