package console

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/chaski-eo/chaski/internal/magic"
	"github.com/chaski-eo/chaski/internal/pathname"
	"github.com/chaski-eo/chaski/source"
)

// outputs are the flags that name a file to write.
var outputs = []string{"output", "stats", "report"}

// NotAnInput refuses a command that would replace a file that one of its arguments or other flags names, a raster below
// a directory that is an argument, or another of its outputs. Commands with --overwrite may do so: they have read a
// file completely before they replace it.
func NotAnInput(fl *pflag.FlagSet, args []string) error {
	if fl.Lookup("overwrite") != nil {
		return nil
	}
	named := slices.Clone(args) // files with any name
	fl.Visit(func(f *pflag.Flag) {
		if !slices.Contains(outputs, f.Name) && f.Value.Type() != "bool" {
			named = append(named, f.Value.String())
		}
	})
	written := map[string]string{} // the flag that names each output
	for _, name := range outputs {
		flag := fl.Lookup(name)
		if flag == nil || !flag.Changed || flag.Value.Type() == "bool" {
			continue
		}
		path, err := filepath.Abs(flag.Value.String())
		if other := written[path]; err == nil && other != "" {
			return Usagef("--%s and --%s are both %s: one would replace the other", other, name, flag.Value)
		}
		written[path] = name
		out, err := os.Stat(flag.Value.String())
		if err != nil || !out.Mode().IsRegular() {
			continue
		}
		for _, in := range named {
			if st, err := os.Stat(source.LocalPath(in)); err == nil && os.SameFile(st, out) {
				return Usagef("--%s is %s, which the command reads: it would be replaced", name, flag.Value)
			}
		}
		for _, arg := range args {
			replaced := flag.Value.String()
			if magic.Named(replaced).Class == magic.Raster && within(replaced, source.LocalPath(arg)) {
				return Usagef("--%s is %s, a raster of %s, which the command reads: it would be replaced", name,
					flag.Value, arg)
			}
		}
	}
	return nil
}

// within reports whether a file lies below a directory, or in the directory of a glob or below it.
func within(name, dir string) bool {
	if i := strings.IndexAny(dir, "*?["); i >= 0 {
		if _, err := os.Lstat(dir); err != nil { // no file has the name of the glob
			dir = pathname.Dir(dir[:i] + "x")
		}
	}
	file, err := filepath.EvalSymlinks(name)
	if err != nil {
		return false
	}
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		return false
	}
	file, ferr := filepath.Abs(file)
	dir, derr := filepath.Abs(dir)
	return ferr == nil && derr == nil && strings.HasPrefix(file, strings.TrimSuffix(dir, "/")+"/")
}
