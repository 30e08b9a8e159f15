package cli

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
	"text/tabwriter"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/loader"
	"github.com/chaski-eo/chaski/shuffle"
	"github.com/chaski-eo/chaski/tables/query"
)

// runFlags describe a run, for the commands that look at one: its spec and the engine's settings.
type runFlags struct {
	data     datasetFlags
	workers  int
	memory   int64
	cache    int64
	maxChunk int
	json     bool
}

func (f *runFlags) add(cmd *cobra.Command) {
	fl := cmd.Flags()
	f.data.add(fl, 32, true)
	f.data.addArithmetic(fl)
	fl.IntVar(&f.workers, "workers", 0, "decoding workers (default: the number of processors)")
	addMemory(fl, &f.memory, "batches")
	fl.Int64Var(&f.cache, "cache", loader.DefaultCacheBytes, "parsed headers and table pages kept, in bytes")
	addMaxChunk(fl, &f.maxChunk)
}

// addMemory adds --memory, which has a default by the batch.
func addMemory(fl *pflag.FlagSet, memory *int64, what string) {
	fl.Int64Var(memory, "memory", 0, "memory of all "+what+" together, in bytes (default 0: four batches, at least 256 MiB and at most a quarter of the machine's memory)")
}

// addMaxChunk adds --max-chunk, the limit that errors call max_chunk.
func addMaxChunk(fl *pflag.FlagSet, limit *int) {
	*limit = loader.DefaultMaxChunkBytes
	fl.Var((*maxChunk)(limit), "max-chunk", "largest decoded chunk (tile, strip or frame) that is read, in `BYTES`; those over 64 MiB are decoded by few workers at a time")
}

// maxChunk is a flag of at least one byte.
type maxChunk int

func (m *maxChunk) String() string { return strconv.Itoa(int(*m)) }

func (*maxChunk) Type() string { return "int" }

func (m *maxChunk) Set(s string) error {
	n, err := strconv.Atoi(s)
	if err == nil && n < 1 {
		err = errors.New("it must be at least 1")
	}
	if err == nil {
		*m = maxChunk(n)
	}
	return err
}

func (f *runFlags) addJSON(fl *pflag.FlagSet, what string) {
	fl.BoolVar(&f.json, "json", false, what)
}

// options are those of the engine.
func (f *runFlags) options(sql query.Full) (loader.Options, error) {
	if f.workers < 0 || f.workers > 4096 || f.memory < 0 || f.cache < 1 {
		return loader.Options{}, usagef("--workers is from 0 to 4096, --memory at least 0, --cache at least 1 byte")
	}
	return loader.Options{Workers: f.workers, MemoryBytes: f.memory, CacheBytes: f.cache, MaxChunkBytes: f.maxChunk, SQL: sql}, nil
}

// open opens the dataset of a run. closeAll ends it, and the files behind it.
func (f *runFlags) open(ctx context.Context, s streams, path string, change func(*loader.Spec, *loader.Options)) (e *loader.Engine, closeAll func(), err error) {
	o, err := f.options(s.sql)
	if err != nil {
		return nil, nil, err
	}
	spec, err := f.data.specOf(path)
	if err != nil {
		return nil, nil, err
	}
	if change != nil {
		change(&spec, &o)
	}
	opener := newOpener(true)
	o.Opener = opener
	if e, err = loader.Open(ctx, spec, o); err != nil {
		opener.Close()
		return nil, nil, usage(err)
	}
	return e, func() {
		e.Close()
		opener.Close()
	}, nil
}

// stepFlags name a step of a run and a rank.
type stepFlags struct {
	state       string
	epoch       uint64
	step, back  int64
	rank, world int
}

func (f *stepFlags) add(fl *pflag.FlagSet) {
	fl.StringVar(&f.state, "state", "", "`FILE` with the JSON of a state: the step is the one that follows it")
	fl.Uint64Var(&f.epoch, "epoch", 0, "the epoch, in place of a state")
	fl.Int64Var(&f.step, "step", 0, "the step of the epoch, from 0, in place of a state")
	fl.Int64Var(&f.back, "back", 0, "so many steps before: 1 is the last step that a state counts")
	fl.IntVar(&f.rank, "rank", 0, "the rank whose rows are taken")
	fl.IntVar(&f.world, "world", 1, "how many ranks share a step (1: all of its rows)")
}

// stepAt is a step of a run.
type stepAt struct {
	Epoch  uint64         `json:"epoch"`
	Step   int64          `json:"step"`
	Rank   int            `json:"rank"`
	World  int            `json:"world"`
	Ticket shuffle.Ticket `json:"ticket"`
}

// at returns the step that the flags name.
func (f *stepFlags) at(fl *pflag.FlagSet, e *loader.Engine) (stepAt, error) {
	spec, steps := e.Spec(), e.Steps()
	s := stepAt{Epoch: f.epoch, Step: f.step, Rank: f.rank, World: f.world}
	named := fl.Changed("epoch") || fl.Changed("step")
	switch {
	case f.world < 1 || f.rank < 0 || f.rank >= f.world:
		return s, usagef("--rank %d of --world %d", f.rank, f.world)
	case steps == 0:
		return s, usagef("an epoch of %d samples has no whole batch of %d", e.Len(), spec.BatchSize)
	case f.back < 0 || f.step < 0:
		return s, usagef("--step and --back are at least 0")
	case f.state != "" && named:
		return s, usagef("--state and --epoch or --step exclude each other")
	case f.state != "":
		b, err := os.ReadFile(f.state)
		if err != nil {
			return s, fileError(f.state, err)
		}
		state, err := shuffle.ParseState(b)
		if err == nil {
			s.Epoch = state.Epoch
			if state, _, err = state.Resume(e.State(), e.Len(), spec.BatchSize, spec.DropLast, true); err == nil {
				s.Step, err = state.Step(e.Len(), spec.BatchSize)
			}
		}
		if err != nil {
			return s, fault.WithFile(fault.Wrap(fault.Corrupt, "state", fault.NoOffset, err), f.state)
		}
		if s.Step >= steps && f.back == 0 { // the end of an epoch is the begin of the next
			s.Epoch, s.Step = s.Epoch+1, 0
		}
	}
	for ; f.back > s.Step && s.Epoch > 0; s.Epoch-- {
		if f.back-s.Step > 1<<40 {
			break
		}
		s.Step += steps
	}
	if s.Step -= f.back; s.Step < 0 || s.Step >= steps {
		return s, usagef("there is no step %d: an epoch has %d", s.Step, steps)
	}
	s.Ticket = shuffle.StepTicket(s.Epoch, s.Step, spec.BatchSize, f.rank, f.world)
	return s, nil
}

// byteSize writes a number of bytes for people.
func byteSize(n int64) string {
	const units = "kMGTPE"
	if n < 1000 {
		return fmt.Sprintf("%d B", n)
	}
	v, i := float64(n)/1000, 0
	for ; math.Round(v*10) >= 10000 && i < len(units)-1; i++ {
		v /= 1000
	}
	return fmt.Sprintf("%.1f %cB", v, units[i])
}

// writeTable writes lines of cells in columns, the first one to the left and the others to the right.
func writeTable(s streams, rows [][]string) error {
	w := tabwriter.NewWriter(s.out, 0, 0, 2, ' ', tabwriter.AlignRight)
	width := 0
	for _, r := range rows {
		width = max(width, utf8.RuneCountInString(r[0]))
	}
	for _, r := range rows {
		fmt.Fprintf(w, "%-*s\t%s\t\n", width, r[0], strings.Join(r[1:], "\t"))
	}
	return w.Flush()
}
