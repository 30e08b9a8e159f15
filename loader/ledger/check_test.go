package ledger

import (
	"encoding/json"
	"fmt"
	"hash/crc32"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/chaski-eo/chaski/tools/testkit/testfile"
)

// written is the file of one process: its lines without checksums, and what the trainer was given by each.
type written struct {
	path  string
	lines []string
	given []given // one for each line after the first
	start int
	rank  int
	first []place // where it began, and the states that it loaded
	gone  bool
}

// given is a batch of one rank.
type given struct {
	epoch     uint64
	step      int
	positions []int
	lost      *bool          // there is no record of it
	bad       map[int]string // by position
	byWeight  bool           // weights drew its samples
}

// text returns lines with their checksums.
func text(lines []string) (out []byte) {
	sum := uint32(0)
	for _, line := range lines {
		sum = crc32.Update(sum, crc32.IEEETable, []byte(line))
		out = fmt.Appendf(out, "%08x %s\n", sum, line)
	}
	return out
}

// save writes the file, with cut bytes of the last line left out.
func (w *written) save(t testing.TB, cut int) {
	t.Helper()
	text := text(w.lines)
	testfile.Write(t, w.path, text[:len(text)-cut])
}

// history simulates a run whose trainers die, go back to a state and go on with other world sizes. The judge of the
// check is what the simulation keeps beside the files: the batches that the model was trained on, which a trainer that
// goes back forgets, each as a list of its positions.
type history struct {
	*rand.Rand
	t                     *testing.T
	folder                string
	samples, batch, steps int
	epochs                uint64
	weighted              [2]place // weights draw from the first place up to the second one
	clock                 float64
	files                 []*written
	model, saved          []given // as of now, and as of the last state
	place, state          place
	isBack                bool
	drops, twins, twices  int // faults to come
	gaps, leaves, bads    int
	sameLaunch            bool
	starts                int
}

// positions returns those of a step and a rank.
func (h *history) positions(step, rank, world int) (out []int) {
	for row := rank; row < h.batch; row += world {
		if p := step*h.batch + row; p < h.samples {
			out = append(out, p)
		}
	}
	return out
}

// rank is a process of a start.
type rank struct {
	*written
	number, world int
	launch        string
	restored      bool
}

// give gives a rank the step at which the history stands.
func (h *history) give(r *rank) {
	h.clock += h.Float64() * 0.01
	if h.isBack {
		h.model, h.isBack = slices.Clone(h.saved), false
	}
	positions := h.positions(int(h.place.Step), r.number, r.world)
	if r.written == nil {
		r.written = &written{path: filepath.Join(h.folder, fmt.Sprintf("%d-%d.ledger", h.starts, len(h.files))),
			start: h.starts, rank: r.number}
		h.files = append(h.files, r.written)
		r.lines = append(r.lines, fmt.Sprintf(
			`{"ledger":1,"run":"r","data":"d","samples":%d,"batch_size":%d,"steps":%d,"rank":%d,"world_size":%d,`+
				`"launch":%q,"epoch":%d,"step":%d,"time":%f}`, h.samples, h.batch, h.steps, r.number, r.world, r.launch,
			h.place.Epoch, h.place.Step, h.clock))
		r.restored, r.first = false, []place{h.place}
	}
	record := map[string]any{"epoch": h.place.Epoch, "step": h.place.Step, "first": -1, "samples": len(positions),
		"time": h.clock}
	if len(positions) > 0 {
		record["first"] = positions[0]
	}
	if r.restored {
		record["restored"], r.restored, r.first = true, false, append(r.first, h.place)
	}
	g := given{epoch: h.place.Epoch, step: int(h.place.Step), positions: positions, lost: new(bool),
		bad: map[int]string{}}
	if g.byWeight = h.place.compare(h.weighted[0]) >= 0 && h.place.compare(h.weighted[1]) < 0; g.byWeight {
		record["weights"] = strings.Repeat("ab", 32)
	}
	if h.bads > 0 && len(positions) > 0 && h.IntN(10) == 0 {
		h.bads--
		p := positions[h.IntN(len(positions))]
		g.bad[p] = []string{"skipped", "replaced", "filled"}[h.IntN(3)]
		record["bad"] = []any{map[string]any{"position": p, "became": g.bad[p]}}
		if g.bad[p] == "skipped" {
			record["samples"] = len(positions) - 1
		}
	}
	line, err := json.Marshal(record)
	if err != nil {
		h.t.Fatal(err)
	}
	times := 1
	switch {
	case h.drops > 0 && record["restored"] == nil && record["bad"] == nil && h.IntN(10) == 0:
		h.drops--
		*g.lost, times = true, 0
	case h.twices > 0 && record["restored"] == nil && record["bad"] == nil && h.IntN(10) == 0:
		h.twices--
		times = 2
	}
	for range times {
		r.lines = append(r.lines, string(line))
		r.given = append(r.given, g)
	}
	for range max(times, 1) {
		h.model = append(h.model, g)
	}
}

// back lets the history go on from the last state. The model that it leaves is forgotten with the first batch.
func (h *history) back() { h.isBack, h.place = true, h.state }

// save saves a state.
func (h *history) save() { h.saved, h.state = slices.Clone(h.model), h.place }

// next moves the place on, and reports whether the run goes on.
func (h *history) next() bool {
	if h.place.Step++; h.place.Step == int64(h.steps) {
		h.place = place{h.place.Epoch + 1, 0}
	}
	return h.place.Epoch < h.epochs
}

// start lets all ranks train until they die or are done. It reports whether the run goes on.
func (h *history) start() bool {
	h.starts++
	h.clock += 5 + 20*h.Float64()
	world := 1 + h.IntN(5)
	launch := ""
	if !h.sameLaunch {
		launch = fmt.Sprint(h.starts)
	}
	ranks := make([]*rank, world)
	for i := range ranks {
		ranks[i] = &rank{number: i, world: world, launch: launch}
	}
	h.back()
	// Two processes that are one rank are told from one after the other by steps that they were given in turn.
	left := int64(h.epochs-h.place.Epoch)*int64(h.steps) - h.place.Step
	if h.twins > 0 && left > 5 && h.leaves == 0 && h.IntN(3) == 0 {
		h.twins--
		ranks = append(ranks, &rank{number: h.IntN(world), world: world, launch: launch})
	}
	if h.gaps > 0 && h.starts > 1 && h.place.Step+2 < int64(h.steps) {
		h.gaps--
		h.place.Step += 1 + h.Int64N(2)
		h.state = h.place // the trainer claims to have been there
		h.saved = slices.DeleteFunc(slices.Clone(h.model), func(g given) bool {
			return place{g.epoch, int64(g.step)}.compare(h.place) >= 0
		})
	}
	twin := len(ranks) > world
	for n := h.IntN(30); n >= 0 || twin; n-- {
		h.Shuffle(len(ranks), func(i, j int) { ranks[i], ranks[j] = ranks[j], ranks[i] })
		whole := twin || n > 0 || h.IntN(2) == 0
		for _, r := range ranks {
			if whole || h.IntN(2) == 0 {
				h.give(r)
			}
		}
		if !whole {
			return true
		}
		if twin = twin && n > -2; n < 0 && !twin {
			return h.next()
		}
		if !h.next() {
			h.save()
			return false
		}
		if h.IntN(4) == 0 {
			h.save()
		}
		switch {
		case h.leaves > 0 && h.IntN(5) == 0 && h.place.Epoch+1 < h.epochs && h.place.Step > 0:
			h.leaves--
			h.place = place{h.place.Epoch + 1, 0}
			h.save()
		case h.IntN(12) == 0 && !twin: // all ranks load the last state in the same process
			h.back()
			h.clock++
			for _, r := range ranks {
				r.restored = true
			}
		}
	}
	return true
}

// counts returns how often each position of an epoch was trained on, by the files that are left.
func (h *history) counts() map[uint64][]int {
	out := map[uint64][]int{}
	for _, g := range h.model {
		if *g.lost {
			continue
		}
		if out[g.epoch] == nil {
			out[g.epoch] = make([]int, min(h.samples, h.steps*h.batch))
		}
		for _, p := range g.positions {
			out[g.epoch][p]++
		}
	}
	return out
}

// expand returns the epochs and positions that exceptions are about.
func (h *history) expand(exceptions []Exception, what string) map[[2]int]bool {
	out := map[[2]int]bool{}
	for _, e := range exceptions {
		if e.What != what {
			continue
		}
		for step := int(e.First); step <= int(e.Last); step++ {
			if e.Ranks == "" {
				for _, p := range h.positions(step, 0, 1) {
					out[[2]int{int(e.Epoch), p}] = true
				}
				continue
			}
			for part := range strings.SplitSeq(e.Ranks, ", ") {
				from, to, several := strings.Cut(part, "-")
				if !several {
					to = from
				}
				first, _ := strconv.Atoi(from)
				last, _ := strconv.Atoi(to)
				for rank := first; rank <= last; rank++ {
					for _, p := range h.positions(step, rank, int(e.World)) {
						out[[2]int{int(e.Epoch), p}] = true
					}
				}
			}
		}
	}
	return out
}

// simulate makes a history with some faults.
func simulate(t *testing.T, seed uint64) *history {
	r := rand.New(rand.NewPCG(seed, 50))
	h := &history{Rand: r, t: t, folder: t.TempDir(), samples: 1 + r.IntN(150), batch: 1 + r.IntN(30),
		epochs: 1 + r.Uint64N(3), clock: 1e9, sameLaunch: r.IntN(2) == 0}
	h.steps = h.samples / h.batch
	if h.steps == 0 || r.IntN(2) == 0 {
		h.steps = (h.samples + h.batch - 1) / h.batch
	}
	for range r.IntN(4) {
		for _, fault := range []*int{&h.drops, &h.twins, &h.twices, &h.gaps, &h.leaves, &h.bads} {
			if r.IntN(6) == 0 {
				*fault++
			}
		}
	}
	if r.IntN(3) == 0 {
		for i := range h.weighted {
			h.weighted[i] = place{r.Uint64N(h.epochs), r.Int64N(int64(h.steps))}
		}
	}
	if r.IntN(8) == 0 { // the ledger is of a run that had begun without
		h.place = place{r.Uint64N(h.epochs), r.Int64N(int64(h.steps))}
		h.save()
	}
	for last := 1 + r.IntN(25); h.start() && h.starts < last; {
	}
	return h
}

// damage cuts the last record of a file off, or removes a file, and writes all of them.
func (h *history) damage() (cut int) {
	torn, lost := -1, -1
	if n := len(h.files); n > 0 && h.IntN(4) == 0 {
		torn = h.IntN(n)
	}
	if n := len(h.files); n > 0 && h.IntN(4) == 0 && !h.sameLaunch {
		lost = h.IntN(n)
		others := slices.ContainsFunc(h.files, func(w *written) bool {
			return w.start == h.files[lost].start && w != h.files[lost]
		})
		if !others || strings.Contains(strings.Join(h.files[lost].lines, ""), "restored") {
			lost = -1
		}
	}
	for i, w := range h.files {
		last := len(w.given) - 1
		switch {
		case i == lost:
			w.gone = true
			for _, g := range w.given {
				*g.lost = true
			}
		case i == torn && last >= 1 && !strings.Contains(w.lines[last+1], "restored") &&
			!slices.ContainsFunc(w.given[:last], func(g given) bool { return g.lost == w.given[last].lost }):
			*w.given[last].lost = true
			w.save(h.t, 1+h.IntN(len(w.lines[last+1])))
			cut++
		default:
			w.save(h.t, 0)
		}
	}
	return cut
}

// TestSimulatedHistories promises that the check of runs whose trainers die, go back and change their number finds
// exactly the samples that are missing, came twice or were bad. CHASKI_SOAK_LEDGER is how many runs.
func TestSimulatedHistories(t *testing.T) {
	n, _ := strconv.Atoi(os.Getenv("CHASKI_SOAK_LEDGER"))
	found := map[string]int{}
	for seed := range uint64(max(n, 400)) {
		h := simulate(t, seed)
		cut := h.damage()
		t.Run(fmt.Sprint(seed), func(t *testing.T) { h.compare(t, cut, found) })
		if t.Failed() {
			return
		}
	}
	t.Log(found)
	for _, what := range []string{"complete", "delivered", "drawn", "missing", "twice", "skipped", "superseded",
		"cut"} {
		if found[what] == 0 {
			t.Errorf("no history has %s", what)
		}
	}
}

// compare compares what the check says with what was simulated.
func (h *history) compare(t *testing.T, cut int, found map[string]int) {
	counts, required := h.counts(), uint64(0)
	if len(counts) == 0 {
		return
	}
	if h.IntN(3) == 0 {
		required = h.epochs
	}
	report, err := Check([]string{h.folder}, required)
	if err != nil {
		t.Fatal(err)
	}
	if len(report.Runs) != 1 || len(report.Cut) != cut || len(report.Damaged) > 0 {
		t.Fatalf("%d runs, %d of %d cut, damaged %v", len(report.Runs), len(report.Cut), cut, report.Damaged)
	}
	run := report.Runs[0]
	missing, twice, more, delivered := h.judge(counts, required)
	if got := h.expand(run.Exceptions, "missing"); !maps.Equal(got, missing) || run.Missing != int64(len(missing)) {
		t.Fatalf("missing %d %v, want %v\n%+v", run.Missing, got, missing, run)
	}
	if got := h.expand(run.Exceptions, "twice"); !maps.Equal(got, twice) || run.Twice != int64(more) {
		t.Fatalf("twice %d %v, want %d %v\n%+v", run.Twice, got, more, twice, run)
	}
	bad := map[[2]int]string{}
	for _, e := range run.Exceptions {
		if e.Position != nil {
			bad[[2]int{int(e.Epoch), int(*e.Position)}] = e.What
			found[e.What]++
		}
	}
	want := map[[2]int]string{}
	for _, g := range h.model {
		for p, what := range g.bad {
			if !*g.lost {
				want[[2]int{int(g.epoch), p}] = what
			}
		}
	}
	if !maps.Equal(bad, want) || run.Wrong > 0 {
		t.Fatalf("bad %v, want %v; %d wrong", bad, want, run.Wrong)
	}
	rest := int64(0)
	for _, s := range run.Starts {
		rest += s.Samples - s.Again
		found["superseded"] += int(s.Again)
	}
	if rest != int64(delivered) {
		t.Fatalf("%d samples count, want %d\n%+v\n%v", rest, delivered, run, counts)
	}
	for _, e := range run.Epochs {
		times := counts[e.Epoch]
		whole := times != nil && !slices.ContainsFunc(times, func(n int) bool { return n != 1 })
		drawn := 0
		for _, g := range h.model {
			if g.epoch == e.Epoch && g.byWeight && !*g.lost {
				drawn += len(g.positions)
			}
		}
		complete := whole && drawn == 0 && h.steps*h.batch >= h.samples
		if e.Delivered != whole || e.Complete != complete || e.ByWeight != int64(drawn) {
			t.Fatalf("epoch %d: %+v, %d drawn, counts %v", e.Epoch, e, drawn, times)
		}
		if complete {
			found["complete"]++
		}
		found["delivered"] += len(times)
		found["drawn"] += drawn
	}
	found["missing"] += len(missing)
	found["twice"] += more
	found["cut"] += cut
}

// judge counts, position by position, what is missing and what came more than once.
func (h *history) judge(counts map[uint64][]int, required uint64) (missing, twice map[[2]int]bool, more,
	delivered int) {
	missing, twice = map[[2]int]bool{}, map[[2]int]bool{}
	numbers := slices.Sorted(maps.Keys(counts))
	var begins []place
	for _, w := range h.files {
		if !w.gone {
			begins = append(begins, w.first...)
		}
	}
	begin := slices.MinFunc(begins, place.compare)
	last := numbers[len(numbers)-1]
	if required > 0 {
		begin, last = place{}, max(last, required-1)
	}
	for e := begin.Epoch; e <= last; e++ {
		times := counts[e]
		if times == nil {
			times = make([]int, min(h.samples, h.steps*h.batch))
		}
		step := func(s int) []int { return times[s*h.batch : min((s+1)*h.batch, len(times))] }
		from, to := 0, h.steps
		if e == begin.Epoch {
			from = int(begin.Step)
		}
		for e == numbers[len(numbers)-1] && e >= required && to > from && slices.Min(step(to-1)) == 0 {
			to--
		}
		for p, n := range times {
			delivered += n
			if n == 0 && p >= from*h.batch && p < to*h.batch {
				missing[[2]int{int(e), p}] = true
			}
			if n > 1 {
				twice[[2]int{int(e), p}] = true
				more += n - 1
			}
		}
	}
	return missing, twice, more, delivered
}
