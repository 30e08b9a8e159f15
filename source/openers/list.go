package openers

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/source"
)

// List lists the objects below a folder if the opener is a source.Lister. Otherwise the error is
// fault.Unsupported.
func List(ctx context.Context, o source.Opener, folder string, each func(source.Entry) error) error {
	if l, ok := o.(source.Lister); ok {
		return l.List(ctx, folder, each)
	}
	r, ok := o.(router)
	if p, err := source.Parse(folder); ok && err == nil && p.Part != nil {
		return listPart(ctx, r, p.Part, each)
	}
	return noListing(folder)
}

// entriesOf returns the names of the entries of a directory whose objects list lists.
func entriesOf(list func(each func(source.Entry) error) error) ([]string, error) {
	seen := map[string]bool{}
	err := list(func(e source.Entry) error {
		name, _, inside := strings.Cut(e.Path, "/")
		if inside {
			name += "/"
		}
		seen[name] = true
		return nil
	})
	if err != nil {
		return nil, err
	}
	return slices.Sorted(maps.Keys(seen)), nil
}

func noListing(folder string) error {
	scheme, _, _ := strings.Cut(folder, "://")
	return fault.WithFile(fault.New(fault.Unsupported, "listing",
		"%s:// has no listing: name the files one by one, or give a catalog of them", scheme), folder)
}
