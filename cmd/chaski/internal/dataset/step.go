// Package dataset has the commands about the runs of a dataset: plan, explain and stats.
package dataset

import (
	"fmt"
	"os"
	"strings"

	"github.com/spf13/pflag"

	"github.com/chaski-eo/chaski/cmd/chaski/internal/console"
	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/loader"
	"github.com/chaski-eo/chaski/loader/batch"
	"github.com/chaski-eo/chaski/shuffle/steps"
)

// stepFlags has the flags that name a step of a run and a rank.
type stepFlags struct {
	state       string
	epoch       uint64
	step, back  int64
	rank, world int
}

func (f *stepFlags) add(fl *pflag.FlagSet) {
	console.Var(fl, &f.state, "state", "")
	console.Var(fl, &f.epoch, "epoch", 0)
	console.CountVar(fl, &f.step, "step", 0, 0)
	console.CountVar(fl, &f.back, "back", 0, 0)
	console.Var(fl, &f.rank, "rank", 0)
	console.CountVar(fl, &f.world, "world", 1, 1)
}

// stepAt is a step of a run.
type stepAt struct {
	Epoch  uint64       `json:"epoch"`
	Step   int64        `json:"step"`
	Rank   int          `json:"rank"`
	World  int          `json:"world"`
	Ticket steps.Ticket `json:"ticket"`
	// Weights draw the samples of the step; nil: they come in the order of the epoch.
	Weights *weightsSince `json:"weights,omitempty"`
}

// weightsSince is weights of samples, and the step with which they begin.
type weightsSince struct {
	Path  string `json:"path"`
	Hash  string `json:"hash"`
	Once  bool   `json:"once,omitempty"`
	Epoch uint64 `json:"epoch"`
	Step  int64  `json:"step"`
}

// since returns weights of a state for batches of a size.
func since(c *steps.Change, batch int) *weightsSince {
	return &weightsSince{Path: c.Path, Hash: c.Hash, Once: c.Once, Epoch: c.Epoch, Step: c.Samples / int64(batch)}
}

// readState reads a state of a run, which must be one of the engine's.
func readState(path string, e *loader.Engine) (state steps.State, err error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return state, console.FileError(path, err)
	}
	spec := e.Spec()
	if state, err = steps.ParseState(data); err == nil {
		state, _, err = state.Resume(e.State(), e.Len(), spec.BatchSize, spec.Cut().Drops(), true)
	}
	if err != nil {
		err = fault.WithFile(fault.Wrap(fault.Corrupt, "state", err), path)
	}
	return state, err
}

// at returns the step that the flags name.
func (f *stepFlags) at(fl *pflag.FlagSet, e *loader.Engine) (stepAt, error) {
	spec, count := e.Spec(), e.Steps()
	var state steps.State
	step := stepAt{Epoch: f.epoch, Step: f.step, Rank: f.rank, World: f.world}
	named := fl.Changed("epoch") || fl.Changed("step")
	if err := checkRank(f.rank, f.world); err != nil {
		return step, err
	}
	switch {
	case count == 0:
		return step, console.Usagef("an epoch of %d samples has no whole batch of %d samples", e.Len(), spec.BatchSize)
	case f.state != "" && named:
		return step, console.Usagef("--state and --epoch or --step exclude each other: a state has its own step")
	case f.state != "":
		var err error
		if state, err = readState(f.state, e); err != nil {
			return step, err
		}
		step.Epoch = state.Epoch
		if step.Step, err = state.Step(e.Len(), spec.BatchSize); err != nil {
			return step, fault.WithFile(fault.Wrap(fault.Corrupt, "state", err), f.state)
		}
		if step.Step >= count && f.back == 0 { // a state at the end of an epoch goes on with the next
			step.Epoch, step.Step = step.Epoch+1, 0
		}
	}
	for ; f.back > step.Step && step.Epoch > 0; step.Epoch-- {
		// A mistyped --back would otherwise keep this loop busy for as many epochs. No run has 2^40 steps.
		if f.back-step.Step > 1<<40 {
			break
		}
		step.Step += count
	}
	if step.Step -= f.back; step.Step < 0 || step.Step >= count {
		return step, console.Usagef("there is no step %d: an epoch has the steps 0 to %d", step.Step, count-1)
	}
	step.Ticket = spec.Cut().Ticket(step.Epoch, step.Step, e.Len(), f.rank, f.world)
	if state.Forgotten(step.Epoch, step.Ticket.First) {
		first := since(&state.Weights[0], spec.BatchSize)
		return step, fault.WithFile(fault.New(fault.NotFound, "weights", "they hold from step %d of "+
			"epoch %d on, and an older state says which held at step %d of epoch %d", first.Step, first.Epoch,
			step.Step, step.Epoch), f.state)
	}
	if change := state.ChangeAt(step.Epoch, step.Ticket.First); change != nil {
		step.Weights = since(change, spec.BatchSize)
		step.Ticket.Weights = state.WeightsAt(step.Epoch, step.Ticket.First)
	}
	return step, nil
}

// checkRank checks --rank and --world.
func checkRank(rank, world int) error {
	if rank < 0 || rank >= world {
		return console.Usagef("--rank is %d, but --world is %d: ranks are 0 to %d", rank, world, world-1)
	}
	return nil
}

// fieldsOf describes the fields of a batch, and where each batch is of one source, the fields of every source.
func fieldsOf(e *loader.Engine) []string {
	sp := e.Spec()
	if sp.Batches == "" {
		return fieldStrings(e.Fields())
	}
	var out []string
	for _, source := range e.Sources() {
		for _, text := range fieldStrings(source.Fields) {
			out = append(out, source.Name+": "+text)
		}
	}
	return out
}

// fieldStrings describes the fields of a batch: name, kind, dtype and lengths of the axes. It leaves out
// n, since all fields share it.
func fieldStrings(fields []batch.FieldInfo) []string {
	out := make([]string, len(fields))
	for i, fieldInfo := range fields {
		var lengths []string
		for k, axis := range fieldInfo.Axes {
			if axis != "n" {
				lengths = append(lengths, fmt.Sprintf("%s %d", axis, fieldInfo.Shape[k]))
			}
		}
		out[i] = fieldInfo.Name + " " + fieldInfo.Kind
		if fieldInfo.DType.Valid() && fieldInfo.DType.String() != fieldInfo.Kind {
			out[i] += " " + fieldInfo.DType.String()
		}
		if len(lengths) > 0 {
			out[i] += " (" + strings.Join(lengths, ", ") + ")"
		}
	}
	return out
}
