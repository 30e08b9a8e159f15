package container

import (
	"cmp"
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/chaski-eo/chaski/cmd/chaski/internal/console"
	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/durable"
	"github.com/chaski-eo/chaski/internal/pathname"
	"github.com/chaski-eo/chaski/loader/containers"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/store"
)

type extractFlags struct {
	out  string
	base string
}

func NewExtract(env console.Env) *cobra.Command {
	var f extractFlags
	cmd := console.Command("extract [-o OUT] CONTAINER::PATH", console.ExactlyOne("PATH"),
		func(cmd *cobra.Command, args []string) error { return f.run(cmd.Context(), env, args[0]) })
	console.Var(cmd.Flags(), &f.out, "output,o", "")
	addBase(cmd.Flags(), &f.base)
	return cmd
}

func (f *extractFlags) run(ctx context.Context, env console.Env, name string) error {
	name, err := source.Resolve(name)
	if err != nil {
		return err
	}
	if entry, ok := containers.Subfile(name); ok {
		return f.file(ctx, env, entry)
	}
	container, path, ok := source.Split(name)
	if ok && !source.IsRemote(name) {
		// A local file may have the separator in its own name.
		if _, err := os.Stat(name); err == nil {
			ok = false
		}
	}
	if !ok {
		return f.file(ctx, env, store.Entry{URI: name, Path: name, Offset: store.Whole, Size: store.Whole})
	}
	dataset, err := containers.Open(ctx, env.Files, container, f.base)
	if err != nil {
		return err
	}
	defer dataset.Close()
	entry, err := dataset.Resolve(ctx, path)
	if err != nil {
		return err
	}
	if entry.Folder {
		return f.folder(ctx, env.Files, dataset, entry)
	}
	return f.file(ctx, env, entry)
}

// file copies the bytes of a sample.
func (f *extractFlags) file(ctx context.Context, env console.Env, e store.Entry) error {
	if err := console.NotToTerminal(f.out, env.Out, "a sample"); err != nil {
		return err
	}
	return env.WriteFile(ctx, f.out, func(w io.Writer) error { return writeSample(ctx, w, env.Files, e) })
}

// folder copies the files below a folder of the container into a new directory. It writes into a
// temporary one and renames it, so the directory never lacks files.
func (f *extractFlags) folder(ctx context.Context, files source.Opener, d containers.Set, e store.Entry) (err error) {
	if f.out == "" || f.out == "-" {
		return console.Usagef("%s is a folder of the container: -o DIR is needed for its files", e.Path)
	}
	if source.IsRemote(f.out) {
		return fault.WithFile(fault.New(fault.Unsupported, "output", "a folder of samples is written to a local disk"),
			f.out)
	}
	if _, err := os.Lstat(f.out); err == nil {
		return console.Usagef("-o %s exists: a folder needs a new directory", f.out)
	}
	folder, err := durable.NewFolder(f.out)
	if err != nil {
		return console.FileError(f.out, err)
	}
	defer func() { err = cmp.Or(err, folder.Remove()) }()
	for leaf, err := range d.LeavesOf(ctx, e, false) {
		if err != nil {
			return err
		}
		if err := extractTo(ctx, folder.Path, files, e, leaf); err != nil {
			return err
		}
	}
	return console.FileError(f.out, folder.Place(f.out))
}

// extractTo copies the sample leaf below folder into dir. It checks the path of the ids, because they
// come from the container and could lead out of dir.
func extractTo(ctx context.Context, dir string, files source.Opener, folder, leaf store.Entry) error {
	rel := filepath.FromSlash(strings.TrimPrefix(leaf.Path, folder.Path+"/"))
	if !filepath.IsLocal(rel) {
		return fault.WithFile(fault.New(fault.Unsupported, "sample "+leaf.Path,
			"its path would lead out of the directory"), leaf.URI)
	}
	name := pathname.Join(dir, rel)
	if err := os.MkdirAll(pathname.Dir(name), 0o777); err != nil {
		return console.FileError(name, err)
	}
	file, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o666)
	if err != nil {
		return console.FileError(name, err)
	}
	return console.FileError(name, cmp.Or(writeSample(ctx, file, files, leaf), file.Close()))
}

// copyBytes is how much of a sample is read at once: a request to a server for each of 4 MiB costs little beside
// their transfer, and a copy needs no more memory.
const copyBytes = 4 << 20

// writeSample writes the bytes of a sample.
func writeSample(ctx context.Context, w io.Writer, files source.Opener, e store.Entry) error {
	file, err := e.Open(ctx, files)
	if err != nil {
		return fault.WithFile(err, e.URI)
	}
	defer file.Close()
	buffer := make([]byte, max(min(copyBytes, file.Size()), 1))
	// Other methods of the writer may have buffers of their own.
	_, err = io.CopyBuffer(struct{ io.Writer }{w}, source.Sequential(ctx, file), buffer)
	return fault.WithFile(err, e.URI)
}
