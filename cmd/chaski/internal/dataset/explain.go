package dataset

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/chaski-eo/chaski/cmd/chaski/internal/console"
	"github.com/chaski-eo/chaski/cmd/chaski/internal/flags"
	"github.com/chaski-eo/chaski/loader"
	"github.com/chaski-eo/chaski/loader/dryrun"
	"github.com/chaski-eo/chaski/loader/spec"
	"github.com/chaski-eo/chaski/shuffle"
	"github.com/chaski-eo/chaski/shuffle/steps"
)

type explainFlags struct {
	run  flags.Run
	step stepFlags
}

func NewExplain(env console.Env) *cobra.Command {
	var f explainFlags
	cmd := &cobra.Command{
		Use:  "explain [flags] SPEC.json|DATASET",
		Args: console.ExactlyOne("SPEC.json or DATASET"),
		RunE: func(cmd *cobra.Command, args []string) error { return f.do(cmd, env, args[0]) },
	}
	f.run.Add(cmd)
	f.step.add(cmd.Flags())
	f.run.AddJSON(cmd.Flags())
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
}

// explainRow is a row of a step. If its sample is bad, Instead has the substitutes in the order in which
// they are tried; the last one is used.
type explainRow struct {
	dryrun.Row
	Instead []dryrun.Row `json:"instead,omitempty"`
}

func (f *explainFlags) do(cmd *cobra.Command, env console.Env, path string) error {
	ctx := cmd.Context()
	engine, err := f.run.Open(ctx, env, path, nil)
	if err != nil {
		return err
	}
	defer engine.Close()
	report := ExplainReport{Spec: engine.Hash(), Dataset: engine.Fingerprint(), Fields: fieldsOf(engine)}
	if report.stepAt, err = f.step.at(cmd.Flags(), engine); err != nil {
		return err
	}
	if report.Rows, err = explainRows(ctx, engine, report.Ticket); err != nil {
		return err
	}
	return console.Print(env.Out, report, f.run.JSON)
}

// explainRows explains the rows of a ticket, with the substitutes of bad samples.
func explainRows(ctx context.Context, e *loader.Engine, t steps.Ticket) ([]explainRow, error) {
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
			draw, err := e.Substitute(ctx, t, row.Draw, attempt)
			if err != nil {
				return nil, err
			}
			sub, err := e.ExplainDraw(ctx, draw)
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
