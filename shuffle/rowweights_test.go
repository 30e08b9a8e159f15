package shuffle

import (
	"context"
	"encoding/binary"
	"errors"
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
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

// rowWeights returns weights that lie in memory.
func rowWeights(t *testing.T, weights []float32) *RowWeights {
	t.Helper()
	w, err := NewRowWeights(t.Context(), int64(len(weights)), 1, func(_ context.Context, to []byte, first int64) error {
		for i := range len(to) / 4 {
			binary.LittleEndian.PutUint32(to[4*i:], math.Float32bits(weights[int(first)+i]))
		}
		return nil
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// rowsOf returns the plan of a dataset of rows with so many samples each.
func rowsOf(t *testing.T, seed uint64, rows int, each, take int64) *Plan {
	return mustPlan(t, Spec{Seed: seed, Shuffle: true, Take: take, Source: Source{Dataset: &Dataset{
		Items: int64(rows), Sampler: Sampler{Kind: RandomWindow{}, H: 1, W: 1, PerItem: each}}}})
}

// TestRowWeightVectors: samples are those of testdata/order.json.
func TestRowWeightVectors(t *testing.T) {
	for _, v := range list[struct {
		Seed, Epoch uint64
		Each        int64
		Once        bool
		Take, Drop  int64
		Weights     []float32
		At          []int64
	}](t, "row_weights") {
		plan, ticket := rowsOf(t, v.Seed, len(v.Weights), v.Each, v.Take), steps.StepTicket(v.Epoch, 0, len(v.At), 0, 1)
		plan.batch, plan.drops = v.Drop, v.Drop > 0
		got, err := plan.Weigh(t.Context(), ticket, rowWeights(t, v.Weights), v.Once)
		if err != nil || !slices.Equal(got, v.At) {
			t.Errorf("seed %d: %v, want %v: %v", v.Seed, got, v.At, err)
		}
	}
}

// TestSubstituteByWeightVectors: substitutes of samples that were drawn by weight are those of testdata/order.json.
func TestSubstituteByWeightVectors(t *testing.T) {
	for _, v := range list[struct {
		Seed, Epoch uint64
		Each, Take  int64
		Weights     []float32
		P, Sample   int64
		Attempt     int
	}](t, "substitutes_by_weight") {
		plan, weights := rowsOf(t, v.Seed, len(v.Weights), v.Each, v.Take), rowWeights(t, v.Weights)
		draw := plan.At(v.Epoch, v.P)
		got, err := plan.SubstituteByWeight(t.Context(), draw, v.Attempt, weights)
		if err != nil || got.Sample != v.Sample || got.Item != v.Sample/v.Each {
			t.Errorf("%+v: %+v: %v", v, got, err)
		}
		uniform := plan.Substitute(draw, v.Attempt)
		if got.Seed != uniform.Seed || got.Transform != uniform.Transform || got.Attempt != v.Attempt {
			t.Errorf("%+v: %+v is not of the attempt's seed: %+v", v, got, uniform)
		}
	}
}

// TestChangedWeightVectors: the weights of a state draw the samples of testdata/order.json, for two ranks.
func TestChangedWeightVectors(t *testing.T) {
	type change struct {
		Epoch   uint64
		Samples int64
		Once    bool
		Weights []float32
	}
	for _, v := range list[struct {
		Seed    uint64
		Rows    int
		Each    int64
		Take    int64
		Changes []change
		At      [][3]int64
	}](t, "changed_weights") {
		plan, state := rowsOf(t, v.Seed, v.Rows, v.Each, v.Take), steps.State{}
		opened := map[string]*RowWeights{}
		for i, c := range v.Changes {
			name := strconv.Itoa(i)
			opened[name] = rowWeights(t, c.Weights)
			state.Weights = append(state.Weights,
				steps.Change{Hash: name, Once: c.Once, Epoch: c.Epoch, Samples: c.Samples})
		}
		for _, at := range v.At {
			ticket := steps.StepTicket(uint64(at[0]), at[1]/2, 2, int(at[1]%2), 2)
			if held := state.WeightsAt(ticket.Epoch, ticket.First); held != nil {
				var err error
				ticket.Samples, err = plan.Weigh(t.Context(), ticket, opened[held.Hash], held.Once)
				if err != nil {
					t.Fatal(err)
				}
			}
			if got := plan.Draw(ticket, 0).Sample; got != at[2] {
				t.Errorf("seed %d: sample %d at position %d of epoch %d, want %d", v.Seed, got, at[1], at[0], at[2])
			}
		}
	}
}

// TestWeightsOfRowsWithOtherCounts: rows with unequally many windows have no weights of rows, also if their mean is the
// count of the first.
func TestWeightsOfRowsWithOtherCounts(t *testing.T) {
	counts := []int64{2, 1, 3}
	runs, err := NewRuns(3, func(item int64) int64 { return counts[item] })
	if err != nil {
		t.Fatal(err)
	}
	sampler := Sampler{Kind: &Grid{H: 1, W: 1, StrideY: 1, StrideX: 1, AlignY: 1, AlignX: 1}, Runs: runs}
	plan := mustPlan(t, Spec{Source: Source{Dataset: &Dataset{Items: 3, Sampler: sampler}}})
	_, err = plan.Weigh(t.Context(), steps.StepTicket(0, 0, 6, 0, 1), rowWeights(t, []float32{1, 1, 1}), false)
	if err == nil || !strings.Contains(err.Error(), "3 weights for 6 samples") {
		t.Errorf("%v", err)
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
