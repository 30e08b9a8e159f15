// Package ledger reads what the ranks of training runs wrote down of the batches that they were given (docs/ledger.md),
// and finds whether every sample of an epoch was delivered exactly once.
//
// A trainer that dies goes back to its last state, so steps after it are delivered again: those that a later start
// redoes are superseded. Check puts the files of all ranks together into starts, cuts each start off where a later one
// began, and counts what is left.
package ledger

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/chaski-eo/chaski/fault"
)

// MaxExceptions is how many exceptions of a run a report lists, and how many of its starts and epochs.
const MaxExceptions = 1000

// maxRuns and maxFiles are how many runs a report lists, and cut and damaged files.
const (
	maxRuns  = 100
	maxFiles = 1000
	// maxLaunch is how many bytes of a launch are told.
	maxLaunch = 256
)

// room bounds what a check takes that no byte of the files pays for.
type room struct {
	epochs int   // without records, because in a file the number of an epoch may be any
	looks  int64 // at deliveries of a step: in a file, any number of them may last over any number of steps
}

func newRoom() *room { return &room{epochs: 1 << 16, looks: 1 << 28} } // some seconds

// Report is what Check found.
type Report struct {
	Runs        []Run `json:"runs"`
	RunsLeftOut int64 `json:"runs_left_out,omitempty"`
	// Cut are files whose last record is not whole, as a machine that crashes leaves it. The record is not counted.
	Cut []string `json:"cut"`
	// Damaged says which files are wrong before their last record. What follows is not counted.
	Damaged []string `json:"damaged"`
	// FilesLeftOut are further cut and damaged files.
	FilesLeftOut int64 `json:"files_left_out,omitempty"`

	samples, records int64 // of Faults
}

// Run is what ledgers say of one spec on one dataset.
type Run struct {
	Run       string `json:"run"`
	Data      string `json:"data"`
	Samples   int64  `json:"samples"` // positions of an epoch
	BatchSize int64  `json:"batch_size"`
	// Counted says what was counted: "samples" if the positions of an epoch are the samples, each once, or "positions"
	// of an epoch of a given length, a mixture, or strata.
	Counted string `json:"counted"`
	// Dropped are positions at the end of each epoch that never come, with the policy "drop" for short batches.
	Dropped int64   `json:"dropped,omitempty"`
	Starts  []Start `json:"starts"`
	Epochs  []Epoch `json:"epochs"`
	// StartsLeftOut and EpochsLeftOut are further ones.
	StartsLeftOut int64       `json:"starts_left_out,omitempty"`
	EpochsLeftOut int64       `json:"epochs_left_out,omitempty"`
	Missing       int64       `json:"missing"` // samples that no rank was given
	Twice         int64       `json:"twice"`   // deliveries of a sample after its first one
	Bad           int64       `json:"bad"`     // samples that could not be read
	Wrong         int64       `json:"wrong"`   // records that contradict the order
	Exceptions    []Exception `json:"exceptions"`
	LeftOut       int64       `json:"exceptions_left_out,omitempty"`
}

// Start is what all ranks together did from a start, or from a state that they loaded, to the next one.
type Start struct {
	place             // where it began
	Time    time.Time `json:"time"`
	World   int64     `json:"world_size"`
	Ranks   int       `json:"ranks"` // that have files
	Launch  string    `json:"launch,omitempty"`
	Samples int64     `json:"samples"` // that its ranks were given
	// Again are the samples that a later start was given once more, after it went back to an older state.
	Again int64 `json:"superseded"`
}

// Epoch is what counts of an epoch.
type Epoch struct {
	Epoch uint64 `json:"epoch"`
	// Complete says that every sample was delivered exactly once, Delivered that every position that comes was: its
	// sample may be drawn by weight.
	Complete  bool  `json:"complete"`
	Delivered bool  `json:"delivered"`
	Steps     int64 `json:"steps"` // that all ranks were given
	Samples   int64 `json:"samples"`
	// ByWeight are the samples among them that weights drew: some may have come often, others never.
	ByWeight int64 `json:"drawn_by_weight,omitempty"`
	// Unfinished says that the last whole step is followed by none. What is missing there is no exception.
	Unfinished bool `json:"unfinished,omitempty"`
	// Begins is the first step that has records, in the first epoch of a ledger.
	Begins int64 `json:"begins,omitempty"`
}

// Exception is samples that were not delivered exactly once.
type Exception struct {
	// What is "missing", "twice", "wrong" or what became of a bad sample: "skipped", "replaced" or "filled".
	What  string `json:"what"`
	Epoch uint64 `json:"epoch"`
	First int64  `json:"first_step"`
	Last  int64  `json:"last_step"`
	Ranks string `json:"ranks,omitempty"` // such as "0, 3-5"; of missing ones empty for all
	World int64  `json:"world_size,omitempty"`
	// Position is where a bad sample stands, or a record that contradicts the order; else nil.
	Position *int64 `json:"position,omitempty"`
	Samples  int64  `json:"samples"`
}

// Faults returns how many samples were lost or repeated, apart from the bad ones that the run let pass, and
// how many records and files are wrong.
func (r *Report) Faults() (samples, records int64) { return r.samples, r.records }

// list adds a file to a list of a report.
func (r *Report) list(files *[]string, text string) {
	if len(*files) >= maxFiles {
		r.FilesLeftOut++
		return
	}
	*files = append(*files, text)
}

// add adds a run.
func (r *Report) add(run *Run) {
	r.samples += run.Missing + run.Twice
	r.records += run.Wrong
	if len(r.Runs) >= maxRuns {
		r.RunsLeftOut++
		return
	}
	r.Runs = append(r.Runs, *run)
}

// Check reads the ledgers in folders. Of each run, so many epochs have to be complete; later ones may be unfinished.
func Check(folders []string, epochs uint64) (*Report, error) {
	report, lives, totals := &Report{}, map[string][]*life{}, &tally{}
	for _, folder := range folders {
		entries, err := os.ReadDir(folder)
		if err != nil {
			return nil, err
		}
		found := false
		for _, entry := range entries {
			if !strings.HasSuffix(entry.Name(), suffix) {
				continue
			}
			found = true
			path := filepath.Join(folder, entry.Name())
			file, err := read(path, totals)
			if err != nil {
				return nil, err
			}
			if file.cut {
				report.list(&report.Cut, path)
			}
			if file.err != nil {
				report.records++
				report.list(&report.Damaged, fault.Fit(fault.Line(file.err)))
			}
			for _, later := range file.lives {
				lives[later.Run] = append(lives[later.Run], later)
			}
		}
		if !found {
			return nil, fault.WithFile(fault.New(fault.NotFound, "ledger", "no *"+suffix), folder)
		}
	}
	left := newRoom()
	for _, run := range slices.Sorted(maps.Keys(lives)) {
		for _, later := range lives[run][1:] {
			first := lives[run][0]
			if later.Samples != first.Samples || later.BatchSize != first.BatchSize || later.Steps != first.Steps {
				return nil, fault.WithFile(fault.At(fault.Corrupt, "head", 0,
					"%d samples in batches of %d, and in %s %d in batches of %d",
					later.Samples, later.BatchSize, first.file, first.Samples, first.BatchSize), later.file)
			}
		}
		checked, err := checkRun(lives[run], epochs, left)
		if err != nil {
			return nil, fault.WithFile(err, lives[run][0].file)
		}
		report.add(&checked)
	}
	return report, nil
}

// start is the lives of all ranks that trained together.
type start struct {
	lives []*life
	begin place
	end   place // where a later start began: what this one was given from there on is superseded
}

// together puts lives into starts, in the order of time. Ranks of a start have one world size and one launch. Where a
// rank comes again, after what it was in before had ended, a new start has begun, at the longest pause between the two.
func together(lives []*life) (starts []*start) {
	slices.SortStableFunc(lives, func(a, b *life) int {
		return cmp.Or(cmp.Compare(a.opened, b.opened), cmp.Compare(a.file, b.file))
	})
	var now []*life
	cut := func(n int) {
		if n > 0 {
			starts = append(starts, &start{lives: now[:n:n]})
			now = now[n:]
		}
	}
	for _, l := range lives {
		if len(now) > 0 && (now[0].World != l.World || now[0].Launch != l.Launch) {
			cut(len(now))
		}
		again := -1
		for i, other := range now {
			if other.Rank == l.Rank && other.last <= l.opened {
				again = i
			}
		}
		now = append(now, l)
		if again >= 0 {
			cut(longestPause(now, again+1))
		}
	}
	cut(len(now))
	next := place{math.MaxUint64, math.MaxInt64}
	for _, s := range slices.Backward(starts) {
		s.begin, s.end = slices.MinFunc(s.lives, func(a, b *life) int { return a.begin.compare(b.begin) }).begin, next
		next = slices.MinFunc([]place{s.begin, next}, place.compare)
	}
	return starts
}

// longestPause returns the first life after the longest time in which no process was given anything, from life n on.
func longestPause(lives []*life, n int) (at int) {
	last, longest := math.Inf(-1), math.Inf(-1)
	for i, l := range lives {
		if pause := l.opened - last; i >= n && pause > longest {
			at, longest = i, pause
		}
		last = max(last, l.last)
	}
	return at
}

// counts returns the part of a stretch that no later start was given again.
func (s *start) counts(part stretch) stretch {
	switch {
	case part.epoch > s.end.Epoch:
		part.to = part.from
	case part.epoch == s.end.Epoch:
		part.to = max(min(part.to, s.end.Step), part.from)
	}
	return part
}

// checkRun finds what a run's lives say.
func checkRun(lives []*life, epochs uint64, left *room) (Run, error) {
	first := lives[0]
	run := Run{Run: first.Run, Data: first.Data, Samples: first.Samples, BatchSize: first.BatchSize, Counted: "samples",
		Dropped: max(first.Samples-first.Steps*first.BatchSize, 0)}
	if first.Take || first.Mixture {
		run.Counted = "positions"
	}
	starts, byEpoch := together(lives), map[uint64]*epoch{}
	for number, begun := range starts {
		oldest := begun.lives[0]
		told := Start{place: begun.begin, Time: timeOf(oldest.opened), World: oldest.World,
			Launch: fault.FitIn(oldest.Launch, maxLaunch)}
		ranks := map[int64]bool{}
		for _, lived := range begun.lives {
			ranks[lived.Rank] = true
			for _, part := range lived.stretches {
				counted := begun.counts(part)
				told.Samples += lived.rows(part.from, part.to)
				told.Again += lived.rows(counted.to, part.to)
				if counted.from < counted.to {
					if byEpoch[part.epoch] == nil {
						byEpoch[part.epoch] = &epoch{head: first.head, number: part.epoch, starts: starts, budget: left}
					}
					e := byEpoch[part.epoch]
					e.edges = append(e.edges, edge{counted.from, number, lived.Rank, 1},
						edge{counted.to, number, lived.Rank, -1})
					if part.byWeight {
						e.byWeight += lived.rows(counted.from, counted.to)
					}
				}
			}
		}
		told.Ranks = len(ranks)
		if len(run.Starts) < MaxExceptions {
			run.Starts = append(run.Starts, told)
		} else {
			run.StartsLeftOut++
		}
	}
	earliest, last := place{}, uint64(0)
	if epochs == 0 { // before it there may have been no ledger
		earliest = slices.MinFunc(starts, func(a, b *start) int { return a.begin.compare(b.begin) }).begin
	}
	for number := range byEpoch {
		last = max(last, number)
	}
	for n := earliest.Epoch; left.epochs > 0 && (n < last || n < epochs); n++ {
		if byEpoch[n] == nil {
			byEpoch[n] = &epoch{head: first.head, number: n, budget: left} // without any record
			left.epochs--
		}
	}
	for _, number := range slices.Sorted(maps.Keys(byEpoch)) {
		e := byEpoch[number]
		if e.mayEnd = number == last && number >= epochs; number == earliest.Epoch {
			e.begins = earliest.Step
		}
		if told := e.sweep(&run); len(run.Epochs) < MaxExceptions {
			run.Epochs = append(run.Epochs, told)
		} else {
			run.EpochsLeftOut++
		}
		delete(byEpoch, number)
	}
	if left.looks < 0 {
		return run, fault.New(fault.Limit, "ledger", "too many ranks were given steps beside each other")
	}
	for _, begun := range starts {
		for _, lived := range begun.lives {
			run.marks(lived, begun)
		}
	}
	slices.SortStableFunc(run.Exceptions, func(a, b Exception) int {
		return cmp.Or(cmp.Compare(a.Epoch, b.Epoch), cmp.Compare(a.First, b.First))
	})
	return run, nil
}

// marks adds what records say of bad samples, and records that contradict the order, where they count.
func (r *Run) marks(l *life, s *start) {
	for _, mark := range slices.Concat(l.wrong, l.bad) {
		if mark.compare(s.end) >= 0 {
			continue
		}
		found := Exception{What: mark.what, Epoch: mark.Epoch, First: mark.Step, Last: mark.Step, World: l.World,
			Position: &mark.position, Samples: mark.samples}
		switch {
		case mark.what == wrong:
			r.Wrong++
		case mark.several:
			r.Bad += mark.samples
			found.Position = nil
		default:
			r.Bad++
		}
		if len(r.Exceptions) >= MaxExceptions {
			if r.LeftOut++; mark.several {
				r.LeftOut += mark.samples - 1
			}
			continue
		}
		found.Ranks = fmt.Sprint(l.Rank)
		r.add(found)
	}
}

// add lists an exception.
func (r *Run) add(e Exception) {
	if n := len(r.Exceptions); n > 0 && r.Exceptions[n-1].follows(&e) {
		r.Exceptions[n-1].Last = e.Last
		r.Exceptions[n-1].Samples += e.Samples
		return
	}
	if len(r.Exceptions) >= MaxExceptions {
		r.LeftOut++
		return
	}
	r.Exceptions = append(r.Exceptions, e)
}

// follows reports whether f says of the next steps what e says of its own.
func (e *Exception) follows(f *Exception) bool {
	ofSteps := e.Position == nil && f.Position == nil
	same := e.What == f.What && e.Ranks == f.Ranks && e.World == f.World
	return ofSteps && same && e.Epoch == f.Epoch && e.Last+1 == f.First
}
