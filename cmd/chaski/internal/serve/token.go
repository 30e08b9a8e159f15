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
	cmd := &cobra.Command{
		Use:  "token [flags] NAME",
		Args: console.ExactlyOne("NAME"),
		RunE: func(_ *cobra.Command, args []string) error {
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
		},
	}
	fl := cmd.Flags()
	fl.StringArrayVar(&c.Roots, "root", nil,
		"`DIR` or prefix of remote URIs that the client may read, below a --root of the server; repeatable\n(default: "+
			"all that the server serves)")
	console.CountVar(fl, &c.Streams, "streams", 0, 0,
		"streams that the client may have at a time (default: that of the server)")
	console.CountVar(fl, &c.Datasets, "datasets", 0, 0,
		"datasets that the client may have open at a time (default: that of the server)")
	console.CountVar(fl, &c.Rate, "rate", 0, 0, "bytes a second that the client is sent (default: that of the server)")
	fl.DurationVar(&valid, "valid", 0, "how long the token is valid, such as 720h (default: until its line is deleted)")
	return cmd
}
