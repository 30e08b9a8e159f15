package container

import (
	"context"
	"math"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"github.com/chaski-eo/chaski/cmd/chaski/internal/console"
	"github.com/chaski-eo/chaski/cmd/chaski/internal/flags"
	"github.com/chaski-eo/chaski/ops/recipe"
	"github.com/chaski-eo/chaski/store/taco/build"
)

// partFlags has the flag that divides a container into parts.
type partFlags struct {
	size string
}

// add adds the flag. more is what else parts may be, beside ZIPs.
func (f *partFlags) add(fl *pflag.FlagSet, more string) {
	flags.NonEmptyVar(fl, &f.size, "part-size",
		"write a folder OUT of ZIPs with files of `SIZE` each, such as 4GB, and an index"+more)
}

// into checks the flag, and sets the parts of a container at out whose form is set.
func (f *partFlags) into(o *build.Options, out string) (err error) {
	switch {
	case f.size == "":
		return nil
	case build.FormOf(out) != build.Folder ||
		o.Form != build.Folder && o.Form != build.TortillaFile && o.Form != build.Cozip:
		return console.Usagef("-o is %q: for parts it must be the name of a folder, without an extension such as "+
			".tacozip, and --form must be auto, folder, taco3 or tortilla", out)
	}
	o.PartBytes, err = parseSize("part-size", f.size)
	return err
}

// madeFlags has the flags for the form of a container that is made by a recipe.
type madeFlags struct {
	form  string
	parts partFlags
}

// add adds the flags. --to is --form: 'chaski convert' says it so.
func (f *madeFlags) add(fl *pflag.FlagSet) {
	fl.SetNormalizeFunc(func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
		if name == "to" {
			name = "form"
		}
		return pflag.NormalizedName(name)
	})
	fl.StringVar(&f.form, "form", "auto",
		"auto (by the name of OUT), zip, folder, taco3, tortilla, taco or taco-plain")
	f.parts.add(fl, "")
}

// output checks the flags, and returns the options of a container at out.
func (f *madeFlags) output(out string) (o recipe.Output, err error) {
	if err := console.OneOf("form", f.form, madeForms...); err != nil {
		return o, err
	}
	o.Form = packForms[f.form]
	if o.Form.Older() && f.parts != (partFlags{}) {
		return o, console.Usagef("--part-size is for ZIPs: --form is %s", f.form)
	}
	form, err := formOf(f.form, out, f.parts)
	if err != nil {
		return o, err
	}
	if o.Form == build.Cozip {
		o.Form = form // or the folder
	}
	b := build.Options{Form: form}
	err = f.parts.into(&b, out)
	o.PartBytes = b.PartBytes
	return o, err
}

// stored has write make a container at out, which may be in a store: see stored.
func (f *madeFlags) stored(ctx context.Context, out string, o recipe.Output,
	write func(path string, o recipe.Output) error) error {
	return stored(ctx, out, o.Form, f.parts, func(path string, store build.Store) error {
		o.Store = store
		return write(path, o)
	})
}

// madeForms are the values of --form for recipes, a part of packForms.
var madeForms = []string{"auto", "zip", "folder", "taco3", "tortilla", "taco", "taco-plain"}

// sizeUnits are the units of sizes, longer names first.
var sizeUnits = []struct {
	name  string
	bytes float64
}{{"KIB", 1 << 10}, {"MIB", 1 << 20}, {"GIB", 1 << 30}, {"TIB", 1 << 40}, {"KB", 1e3}, {"MB", 1e6}, {"GB", 1e9},
	{"TB", 1e12}, {"B", 1}, {"", 1}}

// parseSize returns the bytes of a size such as 4GB, 512MiB or 1000.
func parseSize(flag, text string) (int64, error) {
	upper := strings.ToUpper(strings.TrimSpace(text))
	for _, unit := range sizeUnits {
		number, ok := strings.CutSuffix(upper, unit.name)
		if !ok {
			continue
		}
		n, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
		if n *= unit.bytes; err == nil && n >= 1 && n < math.MaxInt64 {
			return int64(n), nil
		}
		break
	}
	return 0, console.Usagef("--%s is %q: it must be a size such as 4GB, 512MiB or 1000", flag, text)
}
