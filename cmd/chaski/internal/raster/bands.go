package raster

import (
	"context"
	"slices"
	"strings"
	"unicode"

	"github.com/chaski-eo/chaski/cmd/chaski/internal/console"
	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/loader"
	"github.com/chaski-eo/chaski/loader/containers"
	"github.com/chaski-eo/chaski/loader/pixels"
	"github.com/chaski-eo/chaski/loader/raster"
	"github.com/chaski-eo/chaski/loader/rows"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/store/catalog"
	"github.com/chaski-eo/chaski/store/taco"
)

// namedBands returns the numbers of the bands that --b names: "sentinel2msi[B04, B03]" among all bands
// of a sensor, or "B04,B03" among the bands of the container's collection, or of the files. It returns
// nil for a selection by numbers.
func namedBands(ctx context.Context, files source.Opener, text string, paths []string) ([]int, error) {
	if _, err := raster.ParseSelection(text); err == nil || strings.Contains(text, ":") ||
		!strings.ContainsFunc(text, unicode.IsLetter) {
		// Numbers, or text that the parser of selections refuses later with its own error.
		return nil, nil
	}
	if name, list, ok := strings.Cut(text, "["); ok {
		sensor, err := taco.ParseSensor(name)
		if err == nil && sensor.Bands == nil {
			return nil, console.Usagef("--b is %q: there is no sensor %q", text, strings.TrimSpace(name))
		}
		if err != nil {
			return nil, console.Usagef("--b is %q: %w", text, err)
		}
		return pickBands(sensor, strings.TrimSuffix(strings.TrimSpace(list), "]"), paths[0])
	}
	container, _, ok := source.Split(paths[0])
	if !ok {
		return bandsOfFiles(ctx, files, text, paths)
	}
	dataset, err := containers.Open(ctx, files, container, "")
	if err != nil {
		return nil, err
	}
	defer dataset.Close()
	s, ok, err := dataset.Sensor()
	if err != nil {
		return nil, err
	}
	if !ok {
		bands, err := bandsOfFiles(ctx, files, text, paths)
		if fault.KindOf(err) == fault.NotFound {
			err = fault.WithFile(fault.New(fault.NotFound, "COLLECTION", "it names no sensor and no bands, and the "+
				"file has no band of that name; use the numbers of the bands"), container)
		}
		return bands, err
	}
	return pickBands(s, text, container)
}

// bandsOfFiles returns the numbers of the bands with the names in list. They must be the same in all
// files, because one selection applies to the whole stack.
func bandsOfFiles(ctx context.Context, files source.Opener, list string, paths []string) (first []int, err error) {
	want := strings.Split(list, ",")
	for i := range want {
		want[i] = strings.TrimSpace(want[i])
	}
	for i, path := range paths {
		asset := catalog.Asset{URI: path, Index: &chunk.Index{}}
		if _, _, in := source.Split(path); in {
			o := loader.Options{Opener: files}
			if asset, err = raster.One(ctx, o.WithDefaults(), path); err != nil {
				return nil, fault.WithFile(err, path)
			}
		}
		names, err := rows.BandNames(ctx, files, asset)
		if err != nil {
			return nil, err
		}
		bands, err := pixels.PickBands(names, want)
		if err != nil {
			return nil, fault.WithFile(err, path)
		}
		if i == 0 {
			first = bands
		} else if !slices.Equal(bands, first) {
			return nil, fault.WithFile(fault.New(fault.Unsupported, "bands",
				"bands %s have the numbers %v here and %[4]v in %[3]s: read only files with the same order of "+
					"bands together", list, bands, paths[0], first), path)
		}
	}
	return first, nil
}

// pickBands returns the numbers of the bands of a sensor with the names in list.
func pickBands(s taco.Sensor, list, file string) ([]int, error) {
	names := strings.Split(list, ",")
	for i := range names {
		names[i] = strings.TrimSpace(names[i])
	}
	bands, err := s.Pick(names...)
	return bands, fault.WithFile(err, file)
}
