// Package ledger has the command ledger, which checks what ranks wrote down of their batches.
package ledger

import (
	"github.com/spf13/cobra"

	"github.com/chaski-eo/chaski/cmd/chaski/internal/console"
	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/loader/ledger"
)

// NewLedger has the command ledger.
func NewLedger(env console.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:  "ledger",
		Args: console.Verb,
		RunE: func(*cobra.Command, []string) error { return console.Usagef("the verb is missing: check") },
	}
	asJSON, epochs := false, int64(0)
	check := &cobra.Command{
		Use:  "check [flags] DIR...",
		Args: console.AtLeastOne("DIR"),
		RunE: func(_ *cobra.Command, folders []string) error {
			report, err := ledger.Check(folders, uint64(epochs))
			if err != nil {
				return console.FileError(folders[0], err)
			}
			if err := console.Print(env.Out, report, asJSON); err != nil {
				return err
			}
			samples, records := report.Faults()
			if samples+records == 0 {
				return nil
			}
			return fault.WithFile(fault.New(fault.Corrupt, "ledger", fault.NoOffset,
				"%d samples are missing or were delivered twice, and %d records are wrong", samples, records),
				folders[0])
		},
	}
	check.Flags().BoolVar(&asJSON, "json", false, "one line of JSON instead of YAML")
	console.CountVar(check.Flags(), &epochs, "epochs", 0, 0,
		"how many epochs have to be complete, from 0 (0: the last one may be unfinished)")
	cmd.AddCommand(check)
	return cmd
}
