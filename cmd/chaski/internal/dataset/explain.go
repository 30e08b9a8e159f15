package dataset

import (
	"context"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/chaski-eo/chaski/cmd/chaski/internal/console"
	"github.com/chaski-eo/chaski/cmd/chaski/internal/flags"
	"github.com/chaski-eo/chaski/loader"
	"github.com/chaski-eo/chaski/loader/dryrun"
	"github.com/chaski-eo/chaski/loader/resources"
	"github.com/chaski-eo/chaski/loader/spec"
	"github.com/chaski-eo/chaski/shuffle"
)

type explainFlags struct {
	run  flags.Run
	step stepFlags
	time bool
	out  string
}

func NewExplain(env console.Env) *cobra.Command {
	var f explainFlags
	cmd := &cobra.Command{
		Use:     "explain [flags] SPEC.json|DATASET",
		Aliases: []string{"replay"}, // as it was called with -o
		Short:   "Show which samples, windows and bytes make up a step of a run, or reproduce its batch",
		Long: `Show what makes up one step of a run: for each row its position, sample, id and transform, and for each
asset its window, the byte ranges to read and the chunks to decode. The run is a spec in JSON, such as
Python's loader.spec, or a dataset with the flags of 'chaski bench load'. The step is the one that follows
a state (--state FILE), or --step of --epoch. The command reads no pixels, so that it shows only those bad
samples, with their substitutes, that headers and tables reveal.

With --time the command also reads the step, with an engine of its own, and prints where the time of the
workers went (reading, decoding, undoing predictors, scattering, the rest) and which samples were bad.

With -o it reproduces the batch of the step, byte for byte, as an .npz file for numpy.load: one array for each
tensor of the batch, and the arrays valid, position and sample with one element for each row. An element type
that NumPy lacks becomes raw bytes: bfloat16 is "|V2". The member step.json names the step and the bad rows.
With --back 1 it is the last step before the state; --rank R --world W takes the rows of one rank.`,
		Example: `  chaski explain --batch 2 --window 64x64 --step 1 chips/
  chaski explain --state state.json --time spec.json
  chaski explain --state state.json --back 1 --rank 1 --world 2 --json spec.json
  chaski explain --batch 2 --step 1 -o step.npz chips/`,
		Args: console.ExactlyOne("SPEC.json or DATASET"),
		RunE: func(cmd *cobra.Command, args []string) error { return f.do(cmd, env, args[0]) },
	}
	f.run.Add(cmd)
	f.step.add(cmd.Flags())
	f.run.AddJSON(cmd.Flags(), "one line of JSON instead of YAML")
	cmd.Flags().BoolVar(&f.time, "time", false, "also read the step, and print where the time went")
	cmd.Flags().StringVarP(&f.out, "output", "o", "", "`FILE` to write the batch of the step to; - for standard output")
	return cmd
}

// ExplainReport is what explain prints.
type ExplainReport struct {
	Spec    string `json:"spec"`
	Dataset string `json:"dataset"`
	stepAt
	// Fields describe the fields of a batch: kind, dtype and lengths, as found in the dataset.
	Fields []string     `json:"fields"`
	Rows   []explainRow `json:"rows"`
	Time   *stepTime    `json:"time,omitempty"`
}

// explainRow is a row of a step. If its sample is bad, Instead has the substitutes in the order in which
// they are tried; the last one is used.
type explainRow struct {
	dryrun.Row
	Instead []dryrun.Row `json:"instead,omitempty"`
}

// stepTime is the result of reading a step.
type stepTime struct {
	Seconds float64      `json:"seconds"`
	Stages  []stageShare `json:"stages"` // of all workers together
	Chunks  int64        `json:"chunks"`
	Decoded int64        `json:"decoded"`
	Bad     []badRow     `json:"bad"`
}

type stageShare struct {
	Stage   string  `json:"stage"`
	Seconds float64 `json:"seconds"`
}

func (f *explainFlags) do(cmd *cobra.Command, env console.Env, path string) error {
	ctx := cmd.Context()
	var stages *resources.Stages
	engine, closeAll, err := f.run.Open(ctx, env, path, func(_ *loader.Spec, o *loader.Options) {
		if f.time {
			stages = &resources.Stages{}
			o.Stages = stages
		}
	})
	if err != nil {
		return err
	}
	defer closeAll()
	r := ExplainReport{Spec: engine.Hash(), Dataset: engine.Fingerprint(), Fields: fieldsOf(engine)}
	if r.stepAt, err = f.step.at(cmd.Flags(), engine); err != nil {
		return err
	}
	if f.out != "" {
		return f.replay(ctx, env, engine, r.stepAt)
	}
	if r.Rows, err = explainRows(ctx, engine, r.Ticket); err != nil {
		return err
	}
	var failed error
	if f.time {
		r.Time, failed = timeStep(ctx, engine, r.Ticket, stages)
	}
	return console.FirstError(console.Print(env.Out, r, f.run.JSON), failed)
}

// replay writes the batch of a step.
func (f *explainFlags) replay(ctx context.Context, env console.Env, e *loader.Engine, step stepAt) error {
	batch, err := e.Start(ctx, step.Ticket, false).Wait(ctx)
	if err != nil {
		return err
	}
	defer batch.Release()
	return console.WriteFile(f.out, env.Out, func(w io.Writer) error {
		return writeBatch(w, batch, Replayed{e.Hash(), e.Fingerprint(), step, badRows(batch)})
	})
}

// explainRows explains the rows of a ticket, with the substitutes of bad samples.
func explainRows(ctx context.Context, e *loader.Engine, t shuffle.Ticket) ([]explainRow, error) {
	rows, err := e.Explain(ctx, t)
	if err != nil {
		return nil, err
	}
	out := make([]explainRow, len(rows))
	for i, row := range rows {
		out[i].Row = row
		if row.Err == nil || e.Spec().BadSamples != spec.BadReplace {
			continue
		}
		for attempt := 1; attempt <= shuffle.MaxAttempts; attempt++ {
			sub, err := e.ExplainDraw(ctx, e.Plan().Substitute(row.Draw, attempt))
			if err != nil {
				return nil, err
			}
			sub.Row, sub.Position = row.Row, row.Position
			out[i].Instead = append(out[i].Instead, sub)
			if sub.Err == nil {
				break
			}
		}
	}
	return out, nil
}

// timeStep reads a step. It closes the engine, because workers report their time when they end.
func timeStep(ctx context.Context, e *loader.Engine, t shuffle.Ticket, stages *resources.Stages) (*stepTime, error) {
	start := time.Now()
	batch, err := e.Start(ctx, t, false).Wait(ctx)
	out := &stepTime{Seconds: time.Since(start).Seconds(), Bad: []badRow{}}
	if err == nil {
		out.Bad = badRows(batch)
		batch.Release()
	}
	if closing := e.Close(); err == nil {
		err = closing
	}
	for _, s := range resources.AllStages() {
		if s != resources.StageWait {
			out.Stages = append(out.Stages, stageShare{s.String(), stages.Spent(s).Seconds()})
		}
	}
	out.Chunks, out.Decoded = stages.Decoded()
	return out, err
}
