package recipe

import (
	"bytes"

	"github.com/chaski-eo/chaski/ops/columns"
	"github.com/chaski-eo/chaski/stats"
)

// tally measures the chips of one worker.
type tally struct {
	fields []*stats.Field // of all chips; nil before the first
	bands  columns.Summarizer
}

// count adds an image of field k of n to the statistics of all chips.
func (t *tally) count(k, n int, im image) error {
	if t.fields == nil {
		t.fields = make([]*stats.Field, n)
	}
	if t.fields[k] == nil {
		field, err := stats.NewField(im.pixels.DType, int(im.pixels.Shape[1]))
		if err != nil {
			return err
		}
		t.fields[k] = field
	}
	bands, size := int(im.pixels.Shape[1]), im.pixels.DType.Size()
	count := len(im.valid) / bands
	for b := range bands {
		valid := im.valid[b*count:][:count]
		if missing := bytes.Count(valid, []byte{0}); missing > 0 {
			t.fields[k].AddNoData(b, uint64(missing))
		}
		t.fields[k].AddRows(b, t.bands.Valid(im.pixels.Data[b*count*size:][:count*size], valid, size))
	}
	return nil
}

// merge adds the statistics of all fields, which it may keep.
func (t *tally) merge(fields []*stats.Field) error {
	if t.fields == nil {
		t.fields = fields
		return nil
	}
	for k, f := range fields {
		if err := t.fields[k].Merge(f); err != nil {
			return err
		}
	}
	return nil
}

// states returns statistics as parts have them.
func states(fields []*stats.Field) (out [][]byte) {
	for _, f := range fields {
		out = append(out, f.AppendState(nil))
	}
	return out
}

// merged returns the statistics of all chips so far, and forgets them. No worker runs meanwhile.
func (m *Maker) merged() ([]*stats.Field, error) {
	for range m.workers {
		tally := <-m.tallies
		fields := tally.fields
		tally.fields = nil
		m.tallies <- tally
		if err := m.total.merge(fields); err != nil {
			return nil, err
		}
	}
	fields := m.total.fields
	m.total.fields = nil
	return fields, nil
}

// report returns what all workers measured.
func (m *Maker) report(res *Result) (*stats.Report, error) {
	r := &stats.Report{Version: stats.ReportVersion, Samples: int64(m.table.len()), Skipped: res.Bad + res.Misplaced,
		Fields: map[string]stats.FieldReport{}}
	total, err := m.merged()
	if err != nil {
		return nil, err
	}
	for k, field := range total {
		if n := m.table.files[k][0].Shape[0]; field.Bands() != n { // of a part, which may say anything
			return nil, damaged("statistics of %d bands of field %q, which has %d", field.Bands(),
				m.recipe.Fields[k].Name,
				n)
		}
		report := field.Report()
		for b, name := range m.table.bands[k] {
			report.Bands[b].Name = name
		}
		r.Fields[m.recipe.Fields[k].Name] = report
	}
	return r, nil
}
