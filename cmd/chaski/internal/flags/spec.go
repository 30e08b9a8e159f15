package flags

import (
	"context"
	"path/filepath"
	"strings"

	"github.com/spf13/pflag"

	"github.com/chaski-eo/chaski/cmd/chaski/internal/console"
	"github.com/chaski-eo/chaski/cmd/chaski/internal/open"
	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/loader"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/store/zarr"
)

// IsSpec reports whether path, an argument SPEC.json|DATASET, is a spec. A TACOLLECTION.json is a
// container, and a file of references a Zarr store.
func IsSpec(path string) bool {
	var files source.Files
	defer files.Close()
	return strings.EqualFold(filepath.Ext(path), ".json") && filepath.Base(path) != "TACOLLECTION.json" &&
		!zarr.IsReferences(context.Background(), &files, path)
}

// ReadSpec reads a spec. It refuses the flags in own, because the spec would overrule them silently.
func ReadSpec(path string, own *pflag.FlagSet) (loader.Spec, error) {
	if name := Changed(own); name != "" {
		return loader.Spec{}, console.Usagef("--%s describes a dataset: %s is a spec, which says that itself", name,
			path)
	}
	data, err := open.Whole(context.Background(), path)
	if err != nil {
		return loader.Spec{}, fault.WithFile(err, path)
	}
	s, err := loader.ParseSpec(data)
	if err != nil {
		return s, fault.WithFile(fault.New(fault.Corrupt, "spec", fault.NoOffset, "%s",
			strings.TrimPrefix(err.Error(), "spec: ")), path)
	}
	return s, nil
}

// Changed returns the name of the first flag in own that the command line sets, or an empty string.
func Changed(own *pflag.FlagSet) (name string) {
	own.VisitAll(func(flag *pflag.Flag) {
		if flag.Changed && name == "" {
			name = flag.Name
		}
	})
	return name
}
