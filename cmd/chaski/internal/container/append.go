package container

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/chaski-eo/chaski/cmd/chaski/internal/console"
	"github.com/chaski-eo/chaski/store/taco/build"
)

// NewAppend returns the command append.
func NewAppend(env console.Env) *cobra.Command {
	var f packFlags
	cmd := console.Command("append [flags] FOLDER DIR | TABLE | CONTAINER...",
		atLeastTwo("FOLDER and at least one DIR, TABLE or CONTAINER"),
		func(cmd *cobra.Command, args []string) error {
			return f.warn(env, f.append(cmd.Context(), env, args[0], args[1:]))
		})
	f.addShared(cmd.Flags())
	return cmd
}

// append adds samples to a folder.
func (f *packFlags) append(ctx context.Context, env console.Env, folder string, paths []string) error {
	return f.show(env, "append", folder, paths, " added", func(o build.Options) (*build.Result, error) {
		o.Form = build.ZIP
		return build.Append(ctx, folder, o, func(path string, c build.Collection) (*build.Result, error) {
			f.out, f.given = path, &c
			return f.write(ctx, paths, o)
		})
	})
}
