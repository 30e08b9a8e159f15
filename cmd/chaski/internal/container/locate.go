package container

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/chaski-eo/chaski/cmd/chaski/internal/console"
	"github.com/chaski-eo/chaski/format/tables"
	"github.com/chaski-eo/chaski/loader/containers"
	"github.com/chaski-eo/chaski/store"
)

func NewLocate(env console.Env) *cobra.Command {
	var f containerFlags
	var format string
	cmd := console.Command("locate [flags] CONTAINER KEY...", atLeastTwo("CONTAINER and at least one KEY"),
		func(cmd *cobra.Command, args []string) error {
			return f.locate(cmd.Context(), env, args[0], args[1:], format)
		})
	addBase(cmd.Flags(), &f.base)
	console.ChoiceVar(cmd.Flags(), &format, "format", "text", "text", "json")
	f.mode = "intersection"
	return cmd
}

// located is what locate prints.
type located struct {
	VSI     string   `json:"vsi,omitempty"`
	IDs     []string `json:"ids,omitempty"`
	Columns []string `json:"columns,omitempty"`
}

func (f *containerFlags) locate(ctx context.Context, env console.Env, path string, keys []string, format string) error {
	dataset, err := f.open(ctx, env.Files, []string{path})
	if err != nil {
		return err
	}
	defer dataset.Close()
	entry, err := dataset.Locate(ctx, keys)
	if err != nil {
		return err
	}
	var out located
	if !entry.Folder {
		out.VSI = entry.VSI()
	} else if out, err = folderOf(ctx, dataset, entry); err != nil {
		return err
	}
	if format == "json" {
		return console.PrintInput(env.Out, out)
	}
	if out.VSI != "" {
		_, err = fmt.Fprintln(env.Out, out.VSI)
		return err
	}
	for _, id := range out.IDs {
		if _, err := fmt.Fprintln(env.Out, console.Printable(id)); err != nil {
			return err
		}
	}
	return nil
}

func folderOf(ctx context.Context, d containers.Set, e store.Entry) (out located, err error) {
	out.IDs = []string{}
	for c, err := range d.Children(ctx, e) {
		if err != nil {
			return out, err
		}
		out.IDs = append(out.IDs, c.ID)
	}
	if e.Level+1 < d.Levels() {
		var t *tables.Table
		if t, err = d.Level(ctx, e.Level+1); err != nil {
			return out, err
		}
		for _, c := range t.Columns() {
			out.Columns = append(out.Columns, c.Name)
		}
	}
	return out, nil
}
