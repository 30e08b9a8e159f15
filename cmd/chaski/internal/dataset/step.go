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
}

// at returns the step that the flags name.
func (f *stepFlags) at(fl *pflag.FlagSet, e *loader.Engine) (stepAt, error) {
	spec, count := e.Spec(), e.Steps()
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
		data, err := os.ReadFile(f.state)
		if err != nil {
			return step, console.FileError(f.state, err)
		}
		state, err := steps.ParseState(data)
		if err == nil {
			step.Epoch = state.Epoch
			if state, _, err = state.Resume(e.State(), e.Len(), spec.BatchSize, spec.Cut().Drops(), true); err == nil {
				step.Step, err = state.Step(e.Len(), spec.BatchSize)
			}
		}
		if err != nil {
			return step, fault.WithFile(fault.Wrap(fault.Corrupt, "state", fault.NoOffset, err), f.state)
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
