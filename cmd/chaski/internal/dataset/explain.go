package dataset

import (
	"cmp"
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
		Args:    console.ExactlyOne("SPEC.json or DATASET"),
		RunE:    func(cmd *cobra.Command, args []string) error { return f.do(cmd, env, args[0]) },
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
	engine, err := f.run.Open(ctx, env, path, func(_ *loader.Spec, o *loader.Options) {
		if f.time {
			stages = &resources.Stages{}
			o.Stages = stages
		}
	})
	if err != nil {
		return err
	}
	defer engine.Close()
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
	return cmp.Or(console.Print(env.Out, r, f.run.JSON), failed)
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
	spent := stages.Spent()
	for _, s := range resources.AllStages() {
		if s != resources.StageWait {
			out.Stages = append(out.Stages, stageShare{s.String(), spent[s].Seconds()})
		}
	}
	out.Chunks, out.Decoded = stages.Decoded()
	return out, err
}
