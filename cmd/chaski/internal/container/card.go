package container

import (
	"cmp"
	"context"
	"io"
	"os"
	"path"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/chaski-eo/chaski/cmd/chaski/internal/console"
	"github.com/chaski-eo/chaski/cmd/chaski/internal/flags"
	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/pathname"
	"github.com/chaski-eo/chaski/ops/card"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/store/taco/build"
)

type cardFlags struct {
	containerFlags
	to, out, url string
	year         int
}

// NewCard returns the command card.
func NewCard(env console.Env) *cobra.Command {
	var f cardFlags
	cmd := &cobra.Command{
		Use:  "card [flags] CONTAINER",
		Args: console.ExactlyOne("CONTAINER"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.warn(env, f.run(cmd.Context(), env, args[0]))
		},
	}
	fl := cmd.Flags()
	console.ChoiceVar(fl, &f.to, "to", "markdown", "markdown, html, huggingface, croissant, datacite or stac",
		card.Forms...)
	fl.StringVarP(&f.out, "output", "o", "-", "`FILE` to write, - for standard output")
	flags.NonEmptyVar(fl, &f.url, "url", "`URL` where the container is published")
	console.NumberVar(fl, &f.year, "year", 0, 0, 9999, "`YEAR` of its publication (default: this year)")
	f.containerFlags.add(fl)
	return cmd
}

func (f *cardFlags) run(ctx context.Context, env console.Env, name string) error {
	dataset, err := f.open(ctx, env.Files, []string{name})
	if err != nil {
		return err
	}
	defer dataset.Close()
	shown := fault.WithoutSecrets(name) // a card is published
	options := card.Options{Name: shown, URL: fault.WithoutSecrets(f.url), Year: f.year}
	if options.URL == "" && source.IsRemote(name) {
		options.URL = shown
	}
	options.Year = cmp.Or(options.Year, time.Now().Year())
	local, inside, zip := described(name)
	if options.ZIP = zip; !source.IsRemote(name) {
		options.Link = linkTo(f.out, name)
	}
	if options.File = path.Base(filepath.ToSlash(local)); f.out != "-" && !source.IsRemote(name) {
		options.File = linkTo(f.out, local)
	} else if inside != "" {
		options.File = inside
	} else if source.IsRemote(name) {
		options.File = path.Base(shown)
	}
	options.SHA256 = func() (string, error) {
		if source.IsRemote(name) {
			return "", fault.WithFile(fault.New(fault.Unsupported, "file", fault.NoOffset,
				"is not local: Croissant needs the sum of all its bytes"), name)
		}
		file, err := env.Files.Open(ctx, local)
		if err != nil {
			return "", err
		}
		defer file.Close() //nolint:errcheck // it was only read
		return hashReader(ctx, file, make([]byte, 1<<20))
	}
	c, err := card.New(ctx, dataset, options)
	if err != nil {
		return fault.WithFile(err, name)
	}
	data, err := c.Write(f.to)
	if err != nil {
		return err
	}
	return console.WriteFile(f.out, env.Out, func(w io.Writer) error {
		_, err := w.Write(data)
		return err
	})
}

// linkTo returns the path of a local file or folder from the folder of a document. It begins at the root where there is
// none, as for standard output or another drive.
func linkTo(document, name string) string {
	target, err := pathname.Abs(name)
	if err != nil {
		return filepath.ToSlash(name)
	}
	if real, err := filepath.EvalSymlinks(target); err == nil {
		target = real
	}
	if document == "-" {
		return filepath.ToSlash(target)
	}
	base, err := filepath.EvalSymlinks(pathname.Dir(document))
	if err == nil {
		base, err = filepath.Abs(base)
	}
	if err != nil {
		return filepath.ToSlash(target)
	}
	if link, err := filepath.Rel(base, target); err == nil {
		target = link
	}
	return filepath.ToSlash(target)
}

// described returns the file that Croissant describes, its path inside of a container that is a folder, and whether it
// is a ZIP.
func described(name string) (local, inside string, zip bool) {
	table := "METADATA/level0.parquet"
	st, err := os.Stat(name)
	switch {
	case err != nil || !st.IsDir():
		return name, "", build.FormOf(name) == build.ZIP
	case build.FormOf(name) == build.Tacocat:
		table = "level0.parquet"
	case !exists(pathname.Join(name, table)):
		table = ".tacocat/level0.parquet"
	}
	return pathname.Join(name, table), table, false
}

func exists(name string) bool {
	_, err := os.Stat(name)
	return err == nil
}
