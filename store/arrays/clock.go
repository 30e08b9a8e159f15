package arrays

import (
	"cmp"
	"context"
	"path"
	"slices"
	"strings"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/column"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/store"
)

// Times implements store.Timed. The times are the coordinate of t, else an array along n and t that the attribute
// coordinates names, else the coordinate of n (CF conventions, sections 4.4 and 5).
func (s *Raster) Times(ctx context.Context, image int64) ([]column.Value, error) {
	s.clock.Lock()
	defer s.clock.Unlock()
	if !s.clock.read {
		times, err := s.readTimes(ctx)
		if err != nil {
			return nil, err
		}
		s.clock.times, s.clock.read = times, true
	}
	if s.clock.times == nil {
		return nil, nil
	}
	value := s.clock.times.Value(image)
	if s.clock.times.Kind()&column.List != 0 {
		return value.List, nil
	}
	return []column.Value{value}, nil
}

// readTimes finds the times of the images, and reads them. A calendar of climate models, which has no timestamps, gives
// nil. Only a failed read is an error.
func (s *Raster) readTimes(ctx context.Context) (store.Labels, error) {
	a := s.bands[0].a
	rows, steps := s.axisNames()
	if s.node.Array != nil { // an array alone has no coordinates
		return nil, nil
	}
	dir, along := path.Dir(a.Path), [][]string{{steps}, {rows, steps}, {rows}}
	names := append([]string{steps, rows}, strings.Fields(a.Attrs.Text("coordinates"))...)
	for _, axes := range along {
		if slices.Contains(axes, "") {
			continue
		}
		for _, name := range names {
			found := s.node.coordinateArray(ctx, dir, name)
			if name == "" || found == nil || !slices.Equal(found.Names, axes) {
				continue
			}
			if times, err := found.cfTime(); times == nil || err != nil {
				continue
			}
			labels, err := readLabels(ctx, found, nil)
			switch {
			case err == nil && axes[0] == steps:
				return labels.ofSteps(s), nil
			case err == nil:
				return labels, nil
			case ctx.Err() != nil || source.Unreachable(err):
				return nil, cmp.Or(ctx.Err(), err)
			}
		}
	}
	return nil, nil
}

// Steps implements store.Labels.
func (l *Labels) Steps(r store.Raster) (store.Labels, error) {
	raster, ok := r.(*Raster)
	if !ok || len(l.Names) == 0 {
		return nil, nil
	}
	rows, steps := raster.axisNames()
	if steps == "" || l.Names[0] != steps || steps == rows {
		return nil, nil
	}
	if l.lists || l.texts != nil {
		return nil, fault.WithFile(fault.New(fault.Unsupported, labelsPart, "%v: values of the steps of time are one "+
			"number for each", l.Names), l.URI)
	}
	return l.ofSteps(raster), nil
}

// ofSteps returns labels (t) as labels that each image of a raster has.
func (l *Labels) ofSteps(r *Raster) *Labels {
	out := *l
	out.n, out.each, out.lists, out.every = r.Len(), l.n, true, true
	return &out
}
