// Package cache has the command cache, which looks after the folder of --cache-dir.
package cache

import (
	"github.com/spf13/cobra"

	"github.com/chaski-eo/chaski/cmd/chaski/internal/console"
	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/source/diskcache"
)

// NewCache has the command cache, which looks after the folder of --cache-dir.
func NewCache(env console.Env) *cobra.Command {
	cmd := console.Command("cache", console.Verb, func(*cobra.Command, []string) error {
		return console.Usagef("the verb is missing: ls, warm, verify, trim or clear")
	})
	verb := func(use string, run func(dir string) error) *cobra.Command {
		below := console.Command(use, console.ExactlyOne("DIR"),
			func(_ *cobra.Command, args []string) error { return run(args[0]) })
		cmd.AddCommand(below)
		return below
	}
	asJSON := false
	list := verb("ls [flags] DIR", func(dir string) error {
		content, err := diskcache.List(dir)
		if err != nil {
			return err
		}
		return console.Print(env.Out, content, asJSON)
	})
	console.Var(list.Flags(), &asJSON, "json", false)
	cmd.AddCommand(newWarm(env))
	verb("verify DIR", func(dir string) error {
		bar := console.NewBar(env.Err, "verifying", -1)
		ranges, damaged, err := diskcache.Verify(dir, func(done int64) { bar.Set(done, -1) })
		bar.Done()
		if err == nil && damaged > 0 {
			err = fault.WithFile(fault.New(fault.Corrupt, "ranges", fault.NoOffset,
				"%d of %d were damaged, and are removed", damaged, ranges), dir)
		}
		return err
	})
	bytes := int64(0)
	trim := verb("trim --bytes BYTES DIR", func(dir string) error {
		if bytes == 0 {
			return console.Usagef("--bytes is missing")
		}
		return diskcache.Trim(dir, bytes)
	})
	console.CountVar(trim.Flags(), &bytes, "bytes", 0, 1)
	verb("clear DIR", func(dir string) error { return diskcache.Trim(dir, 0) })
	return cmd
}
