package flags

import (
	"context"
	"encoding/json"
	"path/filepath"
	"strings"

	"github.com/spf13/pflag"

	"github.com/chaski-eo/chaski/cmd/chaski/internal/console"
	"github.com/chaski-eo/chaski/cmd/chaski/internal/open"
	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/loader"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/store"
)

// IsSpec reports whether path, an argument SPEC.json|DATASET, is a spec: a JSON file that is neither a store, such as
// a TACOLLECTION.json or a file of references, nor a table of STAC items.
func IsSpec(ctx context.Context, files source.Opener, path string) bool {
	if !strings.EqualFold(filepath.Ext(path), ".json") {
		return false
	}
	kind, err := store.Of(ctx, files, path)
	return (err != nil || kind == store.Other) && !isItems(ctx, files, path)
}

// isItems reports whether a file of JSON has the member "type", as STAC and GeoJSON have it and specs have not, or is
// larger than specs are.
func isItems(ctx context.Context, files source.Opener, path string) bool {
	const largest = 1 << 20 // bytes; loader.ParseSpec refuses more
	file, err := files.Open(ctx, path)
	if err != nil {
		return false
	}
	defer file.Close()
	if file.Size() > largest {
		return true
	}
	data := make([]byte, file.Size())
	var document struct {
		Type *string `json:"type"`
	}
	return file.ReadAt(ctx, data, 0) == nil && json.Unmarshal(data, &document) == nil && document.Type != nil
}

// Parser reads the JSON of a spec, such as loader.ParseSpec.
type Parser func(b []byte) (loader.Spec, error)

// ReadSpec reads a spec. It refuses the flags in own, because the spec would overrule them silently.
func ReadSpec(ctx context.Context, files source.Opener, path string, parse Parser, own *pflag.FlagSet) (loader.Spec,
	error) {
	if name := Changed(own); name != "" {
		return loader.Spec{}, console.Usagef("--%s describes a dataset: %s is a spec, which says that itself", name,
			path)
	}
	data, err := open.Whole(ctx, files, path)
	if err != nil {
		return loader.Spec{}, fault.WithFile(err, path)
	}
	s, err := parse(data)
	if err != nil {
		wrong := fault.New(fault.Corrupt, "spec", "%s", strings.TrimPrefix(err.Error(), "spec: "))
		wrong.Err = console.WrongSpec{Err: err}
		return s, fault.WithFile(wrong, path)
	}
	return s, nil
}

// SpecOr reads the spec at path if it is one, and otherwise makes one of the dataset there and the flags in own.
func SpecOr(ctx context.Context, files source.Opener, path string, parse Parser, own *pflag.FlagSet,
	of func(dataset string) (loader.Spec, error)) (loader.Spec, error) {
	if !IsSpec(ctx, files, path) {
		return of(path)
	}
	return ReadSpec(ctx, files, path, parse, own)
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
