package container

import (
	"context"
	"errors"

	"github.com/spf13/pflag"

	"github.com/chaski-eo/chaski/cmd/chaski/internal/console"
	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/store/taco"
	"github.com/chaski-eo/chaski/store/taco/build"
)

// index writes an index of ZIPs. A folder among the paths stands for the ZIPs in it.
func (f *packFlags) index(ctx context.Context, paths []string, o build.Options) (*build.Result, error) {
	if err := f.unused("an index has the samples of its ZIPs"); err != nil {
		return nil, err
	}
	if f.collection != "" {
		return nil, console.Usagef("--collection is for containers: an index has the description of its ZIPs")
	}
	zips, err := build.ZIPs(ctx, paths, o.Store)
	if err != nil {
		return nil, err
	}
	// An index of broken containers would hide the damage.
	for _, zip := range zips {
		if err := f.verify(ctx, o.Opener, zip); err != nil {
			return nil, fault.WithFile(err, zip)
		}
	}
	if o.Store != nil {
		return build.Consolidate(ctx, zips, f.out, o)
	}
	// The paths, not the ZIPs: an append may have added one meanwhile, which it has checked.
	return build.Consolidate(ctx, paths, f.out, o)
}

// verify checks a container, and keeps its notes.
func (f *packFlags) verify(ctx context.Context, files source.Opener, path string) error {
	dataset, err := taco.Open(ctx, files, []string{path}, taco.Options{})
	if err != nil {
		return err
	}
	checked, err := dataset.Verify(ctx)
	if err == nil {
		f.notes = append(f.notes, checked.Notes...)
	}
	return errors.Join(err, dataset.Close())
}

// unused refuses flags that select samples of containers, for the reason why.
func (f *packFlags) unused(why string) error {
	var ignored error
	f.ofContainers.VisitAll(func(fl *pflag.Flag) {
		if fl.Changed && ignored == nil {
			ignored = console.Usagef("--%s is for containers: %s", fl.Name, why)
		}
	})
	return ignored
}
