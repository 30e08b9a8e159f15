package shuffle

import (
	"context"
	"encoding/binary"
	"errors"
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/chaski-eo/chaski/internal/splitmix"
	"github.com/chaski-eo/chaski/shuffle/steps"
)

// TestRowWeights compares draws with a walk over exact fractions of all weights.
func TestRowWeights(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int{1, 2, 255, 256, 257, 1000, WeightPiece + 3, 2*WeightPiece + weightBlock} {
		weights := make([]float32, n)
		for i := range weights {
			weights[i] = float32(math.Ldexp(random.Float64(), random.IntN(260)-140)) * float32(random.IntN(3))
		}
		weights[n-1] = 1e-44
		read := func(_ context.Context, to []byte, first int64) error {
			for i := range len(to) / 4 {
				binary.LittleEndian.PutUint32(to[4*i:], math.Float32bits(weights[int(first)+i]))
			}
			return nil
		}
		w, err := NewRowWeights(t.Context(), int64(n), 1+n%3, read, nil)
		if err != nil {
			t.Fatal(err)
		}
		scale := new(big.Float).SetFloat64(w.scale)
		sums, sum := make([]uint64, n), uint64(0)
		for i, weight := range weights {
			if weight > 0 {
				whole, _ := new(big.Float).Mul(scale, big.NewFloat(float64(weight))).Int(nil)
				sum += max(whole.Uint64(), 1)
			}
			sums[i] = sum
		}
		plan, err := NewPlan(Spec{Seed: 5, Source: Source{Dataset: &Dataset{Items: int64(n)}}})
		if err != nil {
			t.Fatal(err)
		}
		ticket := steps.StepTicket(3, 0, min(n, 200), 0, 1)
		samples, err := plan.Weigh(t.Context(), ticket, w, false)
		if err != nil {
			t.Fatal(err)
		}
		for p, got := range samples {
			hash := new(big.Int).SetUint64(splitmix.Hash(5, domainRow, 3, uint64(p), 0))
			place := hash.Mul(hash, new(big.Int).SetUint64(sum)).Rsh(hash, 64).Uint64()
			want := 0
			for sums[want] <= place {
				want++
			}
			if int(got) != want || weights[got] == 0 {
				t.Fatalf("%d weights: position %d has %d, want %d", n, p, got, want)
			}
			ticket.Samples = samples
			if draw := plan.Draw(ticket, p); draw.Sample != got || draw.Row != got || draw.Position != int64(p) {
				t.Fatalf("%+v is not of sample %d", draw, got)
			}
		}
	}
}

// TestRowWeightVectors: samples are those of testdata/order.json.
func TestRowWeightVectors(t *testing.T) {
	for _, v := range list[struct {
		at
		Each    int64     `json:"each"`
		Once    bool      `json:"once"`
		Take    int64     `json:"take"`
		Weights []float32 `json:"weights"`
		At      []int64   `json:"at"`
	}](t, "row_weights") {
		read := func(_ context.Context, to []byte, first int64) error {
			for i := range len(to) / 4 {
				binary.LittleEndian.PutUint32(to[4*i:], math.Float32bits(v.Weights[int(first)+i]))
			}
			return nil
		}
		w, err := NewRowWeights(t.Context(), int64(len(v.Weights)), 1, read, nil)
		if err != nil {
			t.Fatal(err)
		}
		plan, err := NewPlan(Spec{Seed: v.Seed, Shuffle: true, Take: v.Take, Source: Source{Dataset: &Dataset{
			Items: int64(len(v.Weights)), Sampler: Sampler{Kind: RandomWindow{}, H: 1, W: 1, PerItem: v.Each}}}})
		if err != nil {
			t.Fatal(err)
		}
		got, err := plan.Weigh(t.Context(), steps.StepTicket(v.Epoch, 0, len(v.At), 0, 1), w, v.Once)
		if err != nil || !slices.Equal(got, v.At) {
			t.Errorf("seed %d: %v, want %v: %v", v.Seed, got, v.At, err)
		}
	}
}

// TestRowWeightsFail: errors of reading, and weights that have become 0, end a draw.
func TestRowWeightsFail(t *testing.T) {
	broken, zero := errors.New("broken"), false
	var fails error
	w, err := NewRowWeights(t.Context(), 10, 1, func(_ context.Context, to []byte, _ int64) error {
		for i := range len(to) / 4 {
			binary.LittleEndian.PutUint32(to[4*i:], math.Float32bits(1))
		}
		if zero {
			clear(to)
		}
		return fails
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	var buffer [4 * weightBlock]byte
	zero = true
	if _, err := w.at(t.Context(), 1<<63, &buffer); err == nil {
		t.Error("weights that are 0 now draw a row")
	}
	fails = broken
	if _, err := w.at(t.Context(), 0, &buffer); !errors.Is(err, broken) {
		t.Errorf("%v, not the error of reading", err)
	}
}
