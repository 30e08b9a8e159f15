package spec

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
)

// reports are the statistics of a spec by field.
type reports struct {
	byField map[string]json.RawMessage
	budget  int  // bytes of them that may still be read
	used    bool // a field is normalised by them
}

// maxStatsBytes bounds the statistics in a spec, counted once for each field and source that reads them: 16 times the
// bytes of a spec, or 80 KiB for each of 200 fields.
const maxStatsBytes = 16 * maxSpecBytes

// look finds the statistics of fields that are normalised by a method, also in sources.
func (r *reports) look(fields []Field, sources []Source) error {
	for i := range fields {
		if n := fields[i].Normalize; n.byStats() {
			if err := r.find(n, fields[i].Name); err != nil {
				return within(fmt.Sprintf("field %q: normalize", fields[i].Name), err)
			}
		}
	}
	for _, s := range sources {
		if err := r.look(s.Fields, s.Sources); err != nil {
			return InSource(s.Name, err)
		}
	}
	return nil
}

// find puts the statistics of a field where it has none of its own.
func (r *reports) find(n *Normalize, field string) error {
	if n.Stats == nil {
		n.Stats, r.used = r.byField[field], true
	}
	r.budget -= len(n.Stats)
	switch {
	case n.Stats == nil && r.byField != nil:
		return fmt.Errorf("%q needs statistics of the field, and stats has %q", n.Method,
			slices.Sorted(maps.Keys(r.byField)))
	case r.budget < 0:
		return fmt.Errorf("fields use over %d bytes of stats", maxStatsBytes)
	}
	return nil
}
