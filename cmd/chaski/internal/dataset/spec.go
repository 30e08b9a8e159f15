package dataset

import (
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/chaski-eo/chaski/cmd/chaski/internal/console"
	"github.com/chaski-eo/chaski/cmd/chaski/internal/flags"
	"github.com/chaski-eo/chaski/loader/spec"
)

// NewSpec returns the command spec.
func NewSpec(env console.Env) *cobra.Command {
	var schema bool
	cmd := console.Command("spec [--schema | SPEC.json]", cobra.MaximumNArgs(1),
		func(cmd *cobra.Command, args []string) error {
			switch {
			case schema == (len(args) == 1):
				return console.Usagef("give either SPEC.json or --schema")
			case schema:
				_, err := env.Out.Write(spec.Schema())
				return err
			}
			none := pflag.NewFlagSet("", pflag.ContinueOnError)
			read, err := flags.ReadSpec(cmd.Context(), env.Files, args[0], spec.ParseSpec, none)
			if err != nil {
				return err
			}
			return console.PrintInput(env.Out, read)
		})
	console.Var(cmd.Flags(), &schema, "schema", false)
	return cmd
}
