package serve

import (
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/chaski-eo/chaski/cmd/chaski/internal/console"
	"github.com/chaski-eo/chaski/grpc/auth"
)

// NewToken has the command token, which makes a token for 'chaski serve --tokens'.
func NewToken(env console.Env) *cobra.Command {
	var c auth.Client
	var valid time.Duration
	cmd := console.Command("token [flags] NAME", console.ExactlyOne("NAME"),
		func(_ *cobra.Command, args []string) error {
			var expires time.Time
			if valid < 0 {
				return console.Usagef("--valid is %v: it must be longer than 0s", valid)
			}
			if valid > 0 {
				expires = time.Now().Add(valid)
			}
			c.Name = args[0]
			if slices.Contains(c.Roots, "") {
				return console.Usagef("--root is empty")
			}
			token := auth.NewToken()
			line, err := auth.Line(token, c, expires)
			if err != nil {
				return console.WrongUsage(err)
			}
			if _, err := fmt.Fprintln(env.Out, line); err != nil {
				return err
			}
			_, err = fmt.Fprintf(env.Err, "The token of %s, which is shown only once:\n%s\n", c.Name, token)
			return err
		})
	fl := cmd.Flags()
	console.Var(fl, &c.Roots, "root", nil)
	console.CountVar(fl, &c.Streams, "streams", 0, 0)
	console.CountVar(fl, &c.Datasets, "datasets", 0, 0)
	console.CountVar(fl, &c.Rate, "rate", 0, 0)
	console.Var(fl, &valid, "valid", 0)
	return cmd
}
