package container

import (
	"cmp"
	"context"
	"io"

	"github.com/spf13/cobra"

	"github.com/chaski-eo/chaski/cmd/chaski/internal/console"
	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/ops/card"
)

type cardFlags struct {
	containerFlags
	to, out, url string
}

// NewCard returns the command card.
func NewCard(env console.Env) *cobra.Command {
	var f cardFlags
	cmd := console.Command("card [flags] CONTAINER", console.ExactlyOne("CONTAINER"),
		func(cmd *cobra.Command, args []string) error {
			return f.warn(env, f.run(cmd.Context(), env, args[0]))
		})
	fl := cmd.Flags()
	console.ChoiceVar(fl, &f.to, "to", "markdown", card.Forms...)
	console.Var(fl, &f.out, "output,o", "-")
	console.NonEmptyVar(fl, &f.url, "url")
	f.containerFlags.add(fl)
	return cmd
}

func (f *cardFlags) run(ctx context.Context, env console.Env, name string) error {
	dataset, err := f.open(ctx, env.Files, []string{name})
	if err != nil {
		return err
	}
	defer dataset.Close()
	// A card is published, so that it must not have secrets.
	address := fault.WithoutSecrets(cmp.Or(f.url, name))
	text, err := card.Make(ctx, dataset, f.to, address)
	if err != nil {
		return fault.WithFile(err, name)
	}
	return console.WriteFile(f.out, env.Out, func(w io.Writer) error {
		_, err := w.Write(text)
		return err
	})
}
