package cli

import (
	"context"
	"strings"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/loader"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/taco"
)

// namedBands returns the bands that a selection names: "sentinel2msi[B04, B03]" of all of a sensor's, or
// "B04,B03" of those in the collection of the container that the first path points into. It returns nil
// for a selection by numbers.
func namedBands(ctx context.Context, files source.Opener, text string, paths []string) ([]int, error) {
	if _, err := loader.ParseSelection(text); text == "" || err == nil {
		return nil, nil
	}
	if name, list, ok := strings.Cut(text, "["); ok {
		all, err := taco.ParseSensor(name)
		if err == nil && all.Bands == nil {
			return nil, usagef("--b: no sensor %q is known", strings.TrimSpace(name))
		}
		if err != nil {
			return nil, usagef("--b: %w", err)
		}
		return pickBands(all, strings.TrimSuffix(strings.TrimSpace(list), "]"), paths[0])
	}
	container, _, ok := taco.Split(paths[0])
	if !ok {
		return nil, nil // the usual error follows
	}
	d, err := taco.Open(ctx, files, []string{container}, taco.Options{})
	if err != nil {
		return nil, err
	}
	defer d.Close()
	s, ok, err := d.Sensor()
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, fault.WithFile(fault.New(fault.NotFound, "COLLECTION", fault.NoOffset, "names no sensor and no bands; --b takes their numbers"), container)
	}
	return pickBands(s, text, container)
}

func pickBands(s taco.Sensor, list, file string) ([]int, error) {
	names := strings.Split(list, ",")
	for i := range names {
		names[i] = strings.TrimSpace(names[i])
	}
	bands, err := s.Pick(names...)
	return bands, fault.WithFile(err, file)
}
