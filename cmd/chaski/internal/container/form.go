package container

import (
	"cmp"
	"context"
	"math"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"github.com/chaski-eo/chaski/cmd/chaski/internal/console"
	"github.com/chaski-eo/chaski/cmd/chaski/internal/open"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/source/blobsource/s3"
	"github.com/chaski-eo/chaski/store/taco/build"
)

// forms are the values of --form.
var forms = map[string]build.Form{"auto": build.Auto, "zip": build.ZIP, "folder": build.Folder, "taco3": build.Cozip,
	"tortilla": build.TortillaFile, "taco": build.StreamingTaco, "taco-plain": build.PlainTaco,
	"tacocat": build.Tacocat, "tacocat-file": build.TacocatFile, "tacollection": build.Tacollection}

// madeForms are the values for containers of samples, indexForms those for indexes of containers.
var (
	madeForms  = []string{"auto", "zip", "folder", "taco3", "tortilla", "taco", "taco-plain"}
	indexForms = []string{"tacocat", "tacocat-file", "tacollection"}
)

// formFlags has the flags for the form of a container that is written.
type formFlags struct {
	form     string
	partSize string
}

// add adds the flags.
func (f *formFlags) add(fl *pflag.FlagSet, forms ...string) {
	console.ChoiceVar(fl, &f.form, "form", "auto", forms...)
	console.NonEmptyVar(fl, &f.partSize, "part-size")
}

// into checks the flags, and sets the form and the parts of a container at out. Of TACO 3, the name of OUT says whether
// it is a ZIP, a folder or an index.
func (f *formFlags) into(o *build.Options, out string) (err error) {
	o.Form = cmp.Or(forms[f.form], build.FormOf(out))
	if f.partSize != "" {
		if build.FormOf(out) != build.Folder ||
			o.Form != build.Folder && o.Form != build.TortillaFile && o.Form != build.Cozip {
			return console.Usagef("-o is %q: for parts it must be the name of a folder, without an extension such as "+
				".tacozip, and --form must be auto, folder, taco3 or tortilla", out)
		}
		o.PartBytes, err = parseSize("part-size", f.partSize)
		return err
	}
	if o.Form != build.Cozip {
		return nil
	}
	switch ext := strings.ToLower(filepath.Ext(out)); {
	case filepath.Base(out) == ".tacocat":
		o.Form = build.CozipCatalog
	case ext == ".tacozip":
		return console.Usagef("-o is %q: the name of a ZIP of TACO 3 ends in .zip", out)
	case ext != ".zip":
		o.Form = build.CozipFolder
	}
	return nil
}

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

// s3Store is s3.Store for package build.
type s3Store struct{ *s3.Store }

// Create implements build.Store.
func (s s3Store) Create(ctx context.Context, uri string, size int64) (build.Object, error) {
	upload, err := s.Store.Create(ctx, uri, size)
	if err != nil {
		return nil, err
	}
	return upload, nil
}

// stored has write make a container of the form of o at a path, in a store if that is not nil. An object is the old one
// or the new one at any time.
func stored(ctx context.Context, out string, o build.Options, write func(path string, store build.Store) error) error {
	if !source.IsRemote(out) {
		return write(out, nil)
	}
	out, err := source.Resolve(out)
	if err != nil {
		return err
	}
	if !open.IsS3(out) {
		return console.Usagef("OUT is %s: a container is written to a local disk or to S3", out)
	}
	bucket, name, key, done, err := open.Bucket(ctx, out)
	if err != nil {
		return err
	}
	defer done()
	oneFile := o.Form.OneFile() && o.PartBytes == 0
	if strings.Trim(key, "/") == "" || oneFile && strings.HasSuffix(key, "/") {
		return console.Usagef("OUT is %s: it has no name of an object", out)
	}
	store, err := s3.StoreOf(bucket, name)
	if err != nil {
		return err
	}
	return write(out, s3Store{store})
}
