package shuffle

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"

	"github.com/chaski-eo/chaski/internal/splitmix"
	"github.com/chaski-eo/chaski/shuffle/steps"
	"github.com/chaski-eo/chaski/tools/testkit/race"
)

// policy is what a simulated loader does with bad samples.
type policy int

const (
	skip policy = iota
	replace
	fill
	policies
)

// job is a training run that will be interrupted: a spec, compiled twice as on two servers, and the
// batches of an uninterrupted run with one rank.
type job struct {
	plans  [2]*Plan
	seed   uint64
	g      int
	drop   bool
	policy policy
	first  uint64     // the epoch that the job begins at
	want   [][]uint64 // of epochs from first: what stands at each position
}

// invalid marks a row that the policy left out.
const invalid = 1

// sizeOf returns the size of the asset of a row, as a catalog would have it.
func sizeOf(dataset int, row int64) (height, width int) {
	return 24 + int(row*7+int64(dataset))%19, 24 + int(row*5)%23
}

// describe returns a hash of everything that decides a batch's row: what is read, from where, and
// how.
func (j *job) describe(pl *Plan, epoch uint64, p int64, rows []int64) uint64 {
	d := pl.At(epoch, p)
	bad := func(d *Draw) bool { return splitmix.Hash(77, uint64(d.Dataset), uint64(d.Row))%5 == 0 }
	if bad(&d) {
		switch j.policy {
		case skip:
			return invalid
		case replace:
			origin := d
			for a := 1; a <= MaxAttempts && bad(&d); a++ {
				d = pl.Substitute(origin, a)
			}
		}
	}
	height, width := sizeOf(d.Dataset, d.Row)
	weights := Weights{CellH: 16, CellW: 16, Across: (width-1)/16 + 1, Sums: []uint64{0, 3, 3, 9}}
	if int(d.Row)%3 == 0 || (height-1)/16 != 1 || (width-1)/16 != 1 {
		weights.Sums = nil
	}
	b, flagged := pl.Window(&d, height, width, &weights)
	rows = rows[:pl.length(d.Dataset)]
	for step := range rows {
		rows[step] = pl.Row(&d, step)
	}
	h := splitmix.Hash(uint64(d.Dataset), d.Epoch, uint64(d.Position), uint64(d.Sample), uint64(d.Item), uint64(d.Row),
		uint64(d.Sub), uint64(d.Transform), uint64(d.Attempt))
	h = splitmix.Hash(h, uint64(b.Y), uint64(b.X), uint64(b.H), uint64(b.W))
	for _, r := range rows {
		h = splitmix.Further(h, uint64(r))
	}
	if flagged {
		h++
	}
	return h
}

// randomDataset makes a small dataset with a random sampler.
func randomDataset(r *rand.Rand, number int) (*Dataset, error) {
	d := &Dataset{Items: 1 + r.Int64N(9)}
	sizes := func(item int64) (int, int) { return sizeOf(number, item) }
	items := d.Items
	switch r.IntN(4) {
	case 0:
		for row := range uint32(d.Items) {
			if r.IntN(2) == 0 || row == 0 {
				d.Rows = append(d.Rows, row)
			}
		}
		items = int64(len(d.Rows))
		sizes = func(item int64) (int, int) { return sizeOf(number, int64(d.Rows[item])) }
	case 1:
		keys, times := make([]int, d.Items), make([]int64, d.Items)
		for i := range keys {
			keys[i], times[i] = r.IntN(3), r.Int64N(5)
		}
		s, err := NewSeries(keys, times, nil, 1+r.IntN(4), 1+r.IntN(3), false)
		if err != nil {
			return nil, err
		}
		d.Series, items = s, s.Len()
		sizes = func(item int64) (int, int) { return sizeOf(number, s.First(item)) }
	}
	d.Transforms = []Elements{0, FlipsX, Rotations, D4}[r.IntN(4)]
	s := &d.Sampler
	s.PerItem, s.H, s.W = 1+r.Int64N(4), 16, 16
	var err error
	switch r.IntN(6) {
	case 0:
		s.Kind = WholeChip{}
	case 1:
		s.Kind = RandomWindow{}
	case 2:
		s.Kind = WeightedWindow{}
	case 3:
		grid := &Grid{
			H: 16, W: 16, StrideY: 4 + r.IntN(20), StrideX: 4 + r.IntN(20),
			AlignY: 1, AlignX: 1, Pad: r.IntN(2) == 0,
		}
		s.Kind = grid
		s.Runs, err = NewRuns(items, func(i int64) int64 { return grid.Count(sizes(i)) })
	case 4:
		s.Kind = &Resized{H: 16, W: 16, Lo: 0.3, Hi: 1, Ratio: 2, OfAsset: r.IntN(2) == 0, AlignY: 1, AlignX: 1}
	case 5:
		visits := &Visits{
			H: 8, W: 8, TileH: 8, TileW: 16, PerVisit: 1 + r.IntN(4),
			Pool: 1 + r.IntN(5), AlignY: 1, AlignX: 1,
		}
		s.Kind = visits
		few := r.IntN(4) != 0 // or about once a tile
		s.Runs, err = NewRuns(items, func(i int64) int64 {
			if few {
				return 1 + (i+items)%3
			}
			return visits.Count(sizes(i))
		})
	}
	return d, err
}

func randomSource(r *rand.Rand, depth int, number *int) (Source, error) {
	if depth == 2 || r.IntN(2) == 0 {
		d, err := randomDataset(r, *number)
		*number++
		return Source{Dataset: d}, err
	}
	m := &Mixture{Until: Until(r.IntN(3))}
	weights := make([]float64, 1+r.IntN(3))
	for i := range weights {
		weights[i] = 0.2 + r.Float64()
		s, err := randomSource(r, depth+1, number)
		if err != nil {
			return s, err
		}
		m.Sources = append(m.Sources, s)
	}
	if m.Until == Given {
		m.Length = 1 + r.Int64N(60)
	}
	var err error
	m.Counts, err = Apportion(WordLen, weights)
	return Source{Mixture: m}, err
}

// jobEpochs are the epochs of a job.
const jobEpochs = 2

// newJob makes a random job with epochs that are short enough to run often.
func newJob(t *testing.T, r *rand.Rand) *job {
	for {
		number := 0
		source, err := randomSource(r, 0, &number)
		if err != nil {
			t.Fatal(err)
		}
		j := &job{
			seed: r.Uint64(), g: 1 + r.IntN(16), drop: r.IntN(3) == 0,
			policy: policy(r.IntN(int(policies))), first: uint64(r.IntN(4)),
		}
		for i := range j.plans {
			j.plans[i] = mustPlan(t, Spec{Seed: j.seed, Shuffle: r.IntN(8) != 0 || i == 1, Source: source})
		}
		j.plans[0].shuffle = j.plans[1].shuffle
		if j.plans[0].Len() > 64 {
			continue
		}
		rows := make([]int64, 8)
		for e := range uint64(jobEpochs) {
			want := make([]uint64, j.plans[0].Len())
			for p := range want {
				want[p] = j.describe(j.plans[0], j.first+e, int64(p), rows)
			}
			j.want = append(j.want, want)
		}
		return j
	}
}

// checkOnce checks that each dataset of a plan gives its epochs one after the other, with each
// sample once in each.
func checkOnce(t *testing.T, pl *Plan) {
	next := make([]int64, len(pl.leaves))
	seen := make([]map[int64]bool, len(pl.leaves))
	for epoch := range uint64(6) {
		for p := range pl.Len() {
			d := pl.At(epoch, p)
			n, k := pl.DatasetLen(d.Dataset), d.Dataset
			if int64(d.Epoch)*n+d.Position != next[k] {
				t.Fatalf("epoch %d position %d: dataset %d stands at %d of its epoch %d, not at its draw %d",
					epoch, p, k, d.Position, d.Epoch, next[k])
			}
			next[k]++
			if d.Position == 0 {
				seen[k] = map[int64]bool{}
			}
			if seen[k][d.Sample] || d.Sample < 0 || d.Sample >= n {
				t.Fatalf("epoch %d position %d: sample %d of dataset %d, of %d, twice or outside",
					epoch, p, d.Sample, k, n)
			}
			seen[k][d.Sample] = true
		}
	}
}

// rank is one process of a simulated run. It knows only the state from which it began, and its
// place.
type rank struct {
	rank, world int
	epoch       uint64
	step        int64
}

// history simulates one run of the job while ranks join, leave and crash, and servers crash.
type history struct {
	*job
	t      *testing.T
	r      *rand.Rand
	ranks  []rank
	counts [][]int     // how often each position was delivered, in what the run's final model has seen
	rows   []int64     // scratch
	batch  []uint64    // scratch
	done   steps.State // what is delivered
	saved  []byte      // the last checkpoint
}

func newHistory(t *testing.T, j *job, r *rand.Rand) *history {
	h := &history{job: j, t: t, r: r, rows: make([]int64, 8), batch: make([]uint64, 2*j.g+64)}
	for range jobEpochs {
		h.counts = append(h.counts, make([]int, j.plans[0].Len()))
	}
	return h
}

// run simulates the job from its first position to its last.
func (h *history) run() {
	for _, c := range h.counts {
		clear(c)
	}
	h.done = steps.State{Version: steps.Version, Seed: h.seed, Epoch: h.first}
	h.save()
	h.restart(h.done)
	for failures := 0; h.done.Epoch < h.first+jobEpochs; {
		switch event := h.r.IntN(12); {
		case event == 0:
			h.save()
		case event == 1:
			h.restart(h.done) // ranks join or leave between two steps
		case event == 2 && failures < 3:
			failures++
			h.crash()
		}
		h.step()
	}
	for e, counts := range h.counts {
		end := len(counts)
		if h.drop {
			end -= end % h.g
		}
		for p, c := range counts {
			if (p < end && c != 1) || (p >= end && c != 0) {
				h.t.Fatalf("epoch %d: position %d of %d was delivered %d times", h.first+uint64(e), p, len(counts), c)
			}
		}
	}
}

func (h *history) save() {
	var err error
	if h.saved, err = json.Marshal(h.done); err != nil {
		h.t.Fatal(err)
	}
}

// restart begins again at a state, with another number of ranks.
func (h *history) restart(s steps.State) {
	world := 1 + h.r.IntN(9)
	h.ranks = h.ranks[:0]
	for i := range world {
		step, err := s.Step(h.plans[0].Len(), h.g)
		if err != nil {
			h.t.Fatal(err)
		}
		h.ranks = append(h.ranks, rank{rank: i, world: world, epoch: s.Epoch, step: step})
	}
}

// crash drops everything after the checkpoint, because the model that saw it is lost.
func (h *history) crash() {
	s, err := steps.ParseState(h.saved)
	if err != nil {
		h.t.Fatal(err)
	}
	for e := s.Epoch; e < h.first+jobEpochs; e++ {
		from := int64(0)
		if e == s.Epoch {
			from = s.Samples
		}
		clear(h.counts[e-h.first][from:])
	}
	h.done = s
	h.restart(s)
}

// step lets every rank take its next batch, and joins the global batch as a collective operation
// would, which would hang if ranks did not agree on steps or shapes.
func (h *history) step() {
	n := h.plans[0].Len()
	for _, rk := range h.ranks {
		if rk.epoch != h.ranks[0].epoch || rk.step != h.ranks[0].step {
			h.t.Fatalf("rank %d is at step %d of epoch %d, rank 0 at %d of %d",
				rk.rank, rk.step, rk.epoch, h.ranks[0].step, h.ranks[0].epoch)
		}
	}
	epoch, step := h.ranks[0].epoch, h.ranks[0].step
	if step >= steps.Count(n, h.g, h.drop) {
		for i := range h.ranks {
			h.ranks[i].epoch++
			h.ranks[i].step = 0
		}
		h.done.Epoch, h.done.Samples = epoch+1, 0
		return
	}
	rows := steps.LocalRows(h.g, len(h.ranks))
	if full := rows * len(h.ranks); full < h.g || full >= h.g+len(h.ranks) {
		h.t.Fatalf("%d ranks of %d rows for a batch of %d", len(h.ranks), rows, h.g)
	}
	batch := h.batch[:rows*len(h.ranks)]
	for i := range h.ranks {
		h.take(&h.ranks[i], rows, batch)
	}
	h.deliver(epoch, step, batch)
}

// take computes one rank's batch on either server. Sometimes the server dies, and another one
// answers the same ticket.
func (h *history) take(rk *rank, rows int, batch []uint64) {
	n := h.plans[0].Len()
	tk := steps.StepTicket(rk.epoch, rk.step, h.g, rk.rank, rk.world)
	if tk.Rows() != rows {
		h.t.Fatalf("rank %d of %d has %d rows, rank 0 %d", rk.rank, rk.world, tk.Rows(), rows)
	}
	server := h.plans[h.r.IntN(2)]
	for k := range rows {
		p := tk.Position(k, n)
		row := uint64(0)
		if p >= 0 {
			row = h.describe(server, tk.Epoch, p, h.rows)
		}
		batch[k*rk.world+rk.rank] = row
	}
	rk.step++
}

func (h *history) deliver(epoch uint64, step int64, batch []uint64) {
	e := epoch - h.first
	first := step * int64(h.g)
	want := h.want[e][first:min(first+int64(h.g), int64(len(h.want[e])))]
	if !slices.Equal(batch[:len(want)], want) {
		h.t.Fatalf("epoch %d step %d with %d ranks: another batch", epoch, step, len(h.ranks))
	}
	for _, padding := range batch[len(want):] {
		if padding != 0 {
			h.t.Fatalf("epoch %d step %d with %d ranks: a sample where padding is", epoch, step, len(h.ranks))
		}
	}
	for p := range want {
		h.counts[e][first+int64(p)]++
	}
	h.done.Samples = min(first+int64(h.g), h.plans[0].Len())
}

// TestElasticHistories: in random runs whose ranks join, leave and crash, every sample is delivered
// once an epoch, batches are equal bit for bit for any number of ranks, and all ranks agree on
// steps. CHASKI_SOAK_LEDGER is how many runs.
func TestElasticHistories(t *testing.T) {
	jobs, histories := 200, 20
	switch n, _ := strconv.Atoi(os.Getenv("CHASKI_SOAK_LEDGER")); {
	case n > 0:
		jobs, histories = n, 200
	case testing.Short() || race.Enabled:
		jobs, histories = 50, 10
	}
	r := rand.New(rand.NewPCG(6, 7))
	kinds := map[string]int{}
	for range jobs {
		j := newJob(t, r)
		checkOnce(t, j.plans[0])
		h := newHistory(t, j, r)
		for range histories {
			h.run()
		}
		for i := range j.plans[0].leaves {
			kinds[fmt.Sprintf("%T", j.plans[0].leaves[i].Sampler.Kind)]++
		}
		kinds["mixtures"] += min(len(j.plans[0].nodes)-len(j.plans[0].leaves), 1)
	}
	t.Logf("%d histories of specs with %v", jobs*histories, kinds)
}
