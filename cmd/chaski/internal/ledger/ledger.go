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
	cmd := console.Command("ledger", console.Verb,
		func(*cobra.Command, []string) error { return console.Usagef("the verb is missing: check") })
	asJSON, epochs := false, int64(0)
	check := console.Command("check [flags] DIR...", console.AtLeastOne("DIR"),
		func(_ *cobra.Command, folders []string) error {
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
			return fault.WithFile(fault.New(fault.Corrupt, "ledger",
				"%d samples are missing or were delivered twice, and %d records are wrong", samples, records),
				folders[0])
		})
	console.Var(check.Flags(), &asJSON, "json", false)
	console.CountVar(check.Flags(), &epochs, "epochs", 0, 0)
	cmd.AddCommand(check)
	return cmd
}
