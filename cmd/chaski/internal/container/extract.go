package container

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/chaski-eo/chaski/cmd/chaski/internal/console"
	"github.com/chaski-eo/chaski/cmd/chaski/internal/open"
	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/loader"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/store/taco"
)

type extractFlags struct {
	out  string
	base string
}

func NewExtract(env console.Env) *cobra.Command {
	var f extractFlags
	cmd := &cobra.Command{
		Use:   "extract [-o OUT] CONTAINER::PATH",
		Short: "Copy a sample's bytes out of a container",
		Long: `Copy the bytes of a sample out of a container, local or remote, as they are: to standard output, or
to the file that -o names. Of a folder -o names a new directory, which gets the files below it by
the paths of their ids. A chunk of a streaming TACO is copied as it is stored, compressed.

GDAL's name of a byte range, /vsisubfile/OFFSET_SIZE,FILE, and a file alone are copied too.`,
		Example: `  chaski extract -o image.tif data.tacozip::roi_qs0/image
  chaski extract -o roi_qs0 data.tacozip::roi_qs0`,
		Args: console.ExactlyOne("PATH"),
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd.Context(), env, args[0]) },
	}
	cmd.Flags().StringVarP(&f.out, "output", "o", "", "`FILE`, or new directory for a folder (default: standard output)")
	cmd.Flags().StringVar(&f.base, "base-path", "", "`FOLDER` of the source files of a catalog (default: where the catalog is)")
	return cmd
}

func (f *extractFlags) run(ctx context.Context, env console.Env, name string) error {
	files := open.NewOpener(true)
	defer files.Close()
	if e, ok := loader.Subfile(name); ok {
		return f.file(ctx, env, files, e)
	}
	container, path, ok := taco.Split(name)
	if ok && !source.IsRemote(name) {
		if _, err := os.Stat(name); err == nil { // a file whose own name has the separator in it
			ok = false
		}
	}
	if !ok {
		return f.file(ctx, env, files, taco.Entry{URI: name, Path: name, Offset: taco.Whole, Size: taco.Whole})
	}
	d, err := taco.Open(ctx, files, []string{container}, taco.Options{BasePath: f.base})
	if err != nil {
		return err
	}
	defer d.Close()
	e, err := d.Resolve(ctx, path)
	if err != nil {
		return err
	}
	if e.Kind == taco.Folder {
		return f.folder(ctx, files, d, e)
	}
	return f.file(ctx, env, files, e)
}

// file copies the bytes of a sample.
func (f *extractFlags) file(ctx context.Context, env console.Env, files source.Opener, e taco.Entry) error {
	if f.out == "" || f.out == "-" {
		if err := console.NotToTerminal(env.Out, "a sample"); err != nil {
			return err
		}
	}
	return console.WriteFile(f.out, env.Out, func(w io.Writer) error { return copySample(ctx, w, files, e) })
}

// copyBytes is how much of a sample is read at once: of a small remote one all, in one request.
const copyBytes = 4 << 20

func copySample(ctx context.Context, w io.Writer, files source.Opener, e taco.Entry) error {
	r, err := taco.Section(ctx, files, e)
	if err != nil {
		return fault.WithFile(err, e.URI)
	}
	defer r.Close()
	buf := make([]byte, min(copyBytes, r.Size())) // no more than there is
	for off := int64(0); off < r.Size(); off += int64(len(buf)) {
		buf = buf[:min(int64(len(buf)), r.Size()-off)]
		if err := r.ReadAt(ctx, buf, off); err != nil {
			return fault.WithFile(err, e.URI)
		}
		if _, err := w.Write(buf); err != nil {
			return err
		}
	}
	return nil
}

// folder copies the files below a sample into a new directory, which is there when all of them are.
func (f *extractFlags) folder(ctx context.Context, files source.Opener, d *taco.Dataset, e taco.Entry) (err error) {
	if f.out == "" || f.out == "-" {
		return console.Usagef("%s is a folder: -o names a new directory for its files", e.Path)
	}
	if _, err := os.Lstat(f.out); err == nil {
		return console.Usagef("-o %s is there already: a folder is copied to a new directory", f.out)
	}
	tmp := fmt.Sprintf("%s.%d.tmp", filepath.Clean(f.out), os.Getpid())
	if err := os.Mkdir(tmp, 0o777); err != nil {
		return console.FileError(tmp, err)
	}
	defer func() {
		if err != nil {
			os.RemoveAll(tmp)
		}
	}()
	for leaf, err := range d.LeavesOf(ctx, e, false) {
		if err != nil {
			return err
		}
		if err := extractTo(ctx, tmp, files, e, leaf); err != nil {
			return err
		}
	}
	return console.FileError(f.out, os.Rename(tmp, f.out))
}

// extractTo copies a file below a folder into a directory. Ids come from the container, so that one may climb.
func extractTo(ctx context.Context, dir string, files source.Opener, folder, leaf taco.Entry) error {
	rel := filepath.FromSlash(strings.TrimPrefix(leaf.Path, folder.Path+"/"))
	if !filepath.IsLocal(rel) {
		return fault.WithFile(fault.New(fault.Unsupported, "sample "+leaf.Path, fault.NoOffset, "its path leads out of a directory"), leaf.URI)
	}
	name := filepath.Join(dir, rel)
	if err := os.MkdirAll(filepath.Dir(name), 0o777); err != nil {
		return console.FileError(name, err)
	}
	f, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o666)
	if err != nil {
		return console.FileError(name, err)
	}
	return console.FileError(name, console.FirstError(copySample(ctx, f, files, leaf), f.Close()))
}
