package container

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/chaski-eo/chaski/cmd/chaski/internal/console"
	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/store/taco/build"
)

type editFlags struct {
	columns           columnFlags
	collection        string
	set, unset        []string
	dropped, renaming []string
	workers           int
}

// NewEdit returns the command edit.
func NewEdit(env console.Env) *cobra.Command {
	var f editFlags
	cmd := console.Command("edit [flags] CONTAINER", console.ExactlyOne("CONTAINER"),
		func(cmd *cobra.Command, args []string) error { return f.run(cmd.Context(), env, args[0]) })
	defined := cmd.Flags()
	console.NonEmptyVar(defined, &f.collection, "collection")
	console.Var(defined, &f.set, "set", nil)
	console.Var(defined, &f.unset, "unset", nil)
	console.Var(defined, &f.dropped, "drop", nil)
	console.Var(defined, &f.renaming, "rename", nil)
	f.columns.add(defined)
	console.CountVar(defined, &f.workers, "workers", 0, 0)
	return cmd
}

func (f *editFlags) run(ctx context.Context, env console.Env, path string) error {
	changes := build.Changes{Drop: f.dropped, Rename: map[string]string{}}
	for _, text := range f.renaming {
		oldName, newName, ok := strings.Cut(text, "=")
		if !ok || oldName == "" || newName == "" || changes.Rename[oldName] != "" {
			return console.Usagef("--rename %s: it must be OLD=NEW, once for each column", text)
		}
		changes.Rename[oldName] = newName
	}
	options := build.Options{Opener: env.Files, Workers: f.workers}
	if err := f.columns.check(&options); err != nil {
		return err
	}
	f.columns.attach.Replace = true
	f.columns.into(&options)
	if f.set != nil || f.unset != nil || f.collection != "" {
		set, err := f.members()
		if err != nil {
			return err
		}
		changes.Describe = func(c *build.Collection) error { return f.describe(c, set) }
	} else if options.More == nil && options.Inspect == nil && f.dropped == nil && f.renaming == nil {
		return console.Usagef("nothing to change: --set, --collection, --metadata, --columns, --drop or --rename")
	}
	if err := build.Edit(ctx, path, changes, options); err != nil {
		return console.FileError(path, err)
	}
	f.columns.report(env)
	_, err := fmt.Fprintf(env.Out, "%s: changed\n", console.Printable(path))
	return err
}

// textMembers are the members of COLLECTION.json whose values are text, also where they look like numbers.
var textMembers = []string{"id", "dataset_version", "description", "taco_version", "title"}

// members returns the document of each --set. Text that is not a list or an object of YAML is kept as it is: YAML
// would end a sentence at " #", and make an object of one with ": ".
func (f *editFlags) members() (docs [][]byte, err error) {
	for _, text := range f.set {
		name, value, ok := strings.Cut(text, "=")
		if !ok || name == "" {
			return nil, console.Usagef("--set %s: it must be KEY=VALUE", text)
		}
		if build.IsComputed(name) {
			return nil, console.Usagef("--set %s: it follows from the samples, and cannot be set", name)
		}
		if slices.Contains(textMembers, name) || !isYAML(value) {
			quoted, err := json.Marshal(value)
			if err != nil {
				return nil, err
			}
			value = string(quoted)
		}
		key, err := json.Marshal(name)
		if err != nil {
			return nil, err
		}
		docs = append(docs, []byte("{"+string(key)+": "+value+"\n}"))
	}
	return docs, nil
}

// isYAML reports whether a value is a list, an object or a quoted text of YAML, or as JSON has it a number, true, false
// or null.
func isYAML(value string) bool {
	value = strings.TrimSpace(value)
	return value != "" && strings.Contains("[{'\"", value[:1]) || json.Valid([]byte(value))
}

// describe changes a description.
func (f *editFlags) describe(c *build.Collection, set [][]byte) error {
	if err := setMembers(c, f.collection); err != nil {
		return err
	}
	for i, doc := range set {
		if err := c.SetYAML(doc); err != nil {
			return fault.WithFile(err, "--set "+f.set[i])
		}
	}
	for _, name := range f.unset {
		if !c.Unset(name) {
			return fault.New(fault.NotFound, "COLLECTION.json", fault.NoOffset,
				"%s is not there, or required: --unset removes optional members", name)
		}
	}
	f.columns.attach.Text = c.TextColumns()
	return nil
}
