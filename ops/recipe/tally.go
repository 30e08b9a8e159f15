package recipe

import (
	"bytes"
	"math"
	"slices"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/ops/columns"
	"github.com/chaski-eo/chaski/stats"
)

// tally measures the chips of one worker.
type tally struct {
	fields []*stats.Field // of all chips; nil before the first
	line   []byte         // the valid samples of a band
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
	t.each(im, func(b int, line []byte, missing int) {
		if missing > 0 {
			t.fields[k].AddNoData(b, uint64(missing))
		}
		t.fields[k].AddRows(b, line)
	})
	return nil
}

// summaries returns the statistics of an image by band as geotiff:stats has them: min, max, mean, std, percentage of
// valid pixels, and the percentiles 25, 50, 75 and 95. It is nil if no pixel is valid; a band without a valid pixel
// beside others has NaN.
func (t *tally) summaries(im image) ([][]float64, error) {
	out, none := make([][]float64, im.pixels.Shape[1]), true
	t.each(im, func(b int, line []byte, _ int) {
		out[b] = t.bands.Of(line, im.pixels.DType, len(im.valid)/len(out))
		none = none && (out[b] == nil || math.IsNaN(out[b][0]))
	})
	if slices.ContainsFunc(out, func(band []float64) bool { return band == nil }) {
		return nil, fault.New(fault.Unsupported, "image", fault.NoOffset, "%s has no statistics", im.pixels.DType)
	}
	if none {
		return nil, nil
	}
	return out, nil
}

// each calls do with the valid samples of each band, and how many are missing.
func (t *tally) each(im image, do func(b int, line []byte, missing int)) {
	bands, size := int(im.pixels.Shape[1]), im.pixels.DType.Size()
	count := len(im.valid) / bands
	for b := range bands {
		line, valid := im.pixels.Data[b*count*size:][:count*size], im.valid[b*count:][:count]
		missing := bytes.Count(valid, []byte{0})
		if missing > 0 {
			line = t.valid(line, valid, size)
		}
		do(b, line, missing)
	}
}

// valid returns the valid samples of a line.
func (t *tally) valid(line, valid []byte, size int) []byte {
	t.line = t.line[:0]
	for i, v := range valid {
		if v != 0 {
			t.line = append(t.line, line[i*size:(i+1)*size]...)
		}
	}
	return t.line
}

// measure adds a chip that was not measured when it was made.
func (m *maker) measure(c *chip) error {
	if c.judged == nil {
		return nil
	}
	tally := <-m.tallies
	defer func() { m.tallies <- tally }()
	for k := range c.images {
		if err := tally.count(k, len(c.images), c.images[k]); err != nil {
			return err
		}
	}
	if c.measured == nil {
		return nil
	}
	if err := tally.merge(c.measured); err != nil {
		return damaged("statistics of a chip: %v", err)
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

// merged returns the statistics of all chips so far. No worker runs meanwhile.
func (m *maker) merged() ([]*stats.Field, error) {
	total := <-m.tallies
	defer func() { m.tallies <- total }()
	for range m.workers - 1 {
		tally := <-m.tallies
		fields := tally.fields
		tally.fields = nil
		m.tallies <- tally
		if err := total.merge(fields); err != nil {
			return nil, err
		}
	}
	return total.fields, nil
}

// report returns what all workers measured.
func (m *maker) report(res *Result) (*stats.Report, error) {
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
