package jobs

import (
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"github.com/chaski-eo/chaski/cmd/chaski/internal/console"
	"github.com/chaski-eo/chaski/job"
)

func newStatus(env console.Env) *cobra.Command {
	var asJSON, check bool
	cmd := &cobra.Command{
		Use:   "status [flags] FOLDER",
		Short: "Print how far a job is",
		Long: `Print how many shards have a result, which failed, which have none, and which one took longest. A result
counts by its name; with --check it is read, as 'job merge' does, and a damaged one does not count.
Requests are those to stores and servers, and reads of local files. --json has the run of each shard.`,
		Example: `  chaski job status job/
  chaski job status --check --json job/`,
		Args: console.ExactlyOne("FOLDER"),
		RunE: func(cmd *cobra.Command, args []string) error {
			j, closeJob, err := opened(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			defer closeJob()
			status, err := j.Status(cmd.Context(), check)
			if err != nil {
				return err
			}
			if asJSON {
				return console.PrintJSON(env.Out, status)
			}
			return printStatus(env.Out, status)
		},
	}
	cmd.Flags().BoolVar(&check, "check", false, "read all results: damaged ones do not count")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// listed is how many shards are named in a line, and how many errors are printed.
const listed = 10

func printStatus(w io.Writer, s *job.Status) error {
	rows := [][]string{
		{"shards", fmt.Sprintf("%d of %d done", s.Done, s.Shards)},
		{"items", fmt.Sprintf("%d of %d", s.ItemsDone, s.Items)},
		{"skipped", fmt.Sprint(s.Skipped)},
	}
	if s.Bytes > 0 {
		rows = append(rows, []string{"bytes", fmt.Sprintf("%d of %d", s.BytesDone, s.Bytes)})
	}
	if s.Done > 0 {
		rows = append(rows, []string{"read", fmt.Sprintf("%d bytes in %d requests", s.Read, s.Requests)})
	}
	if s.ItemsRate > 0 {
		rows = append(rows, []string{"items a second", fmt.Sprintf("%.1f", s.ItemsRate)})
	}
	if s.Done > 0 {
		rows = append(rows, []string{"seconds a shard", fmt.Sprintf("%.1f", s.Seconds/float64(s.Done))})
	}
	if s.Slowest >= 0 {
		rows = append(rows, []string{"slowest shard", fmt.Sprint(s.Slowest)})
	}
	for _, item := range []struct {
		what   string
		shards []int
	}{{"failed", s.Failed}, {"running, or killed", s.Running}, {"without a result", s.Missing}} {
		if n := len(item.shards); n > 0 {
			text := fmt.Sprint(slices.Clip(item.shards[:min(n, listed)]))
			if n > listed {
				text += fmt.Sprintf(" and %d more", n-listed)
			}
			rows = append(rows, []string{item.what, text})
		}
	}
	if err := console.WriteTable(w, rows); err != nil {
		return err
	}
	printed := 0
	for _, run := range s.Runs {
		if run.State == job.Failed && printed < listed {
			printed++
			fmt.Fprintf(w, "shard %d: %s\n", run.Shard, console.OneLine(run.Error))
		}
	}
	return nil
}
