package recipe

import (
	"bytes"
	"math"

	"github.com/chaski-eo/chaski/loader"
	"github.com/chaski-eo/chaski/ops/columns"
	"github.com/chaski-eo/chaski/stats"
)

// tally measures the chips of one worker.
type tally struct {
	fields []*stats.Field // of all chips; nil before the first
	line   []byte         // the valid samples of a band
	bands  columns.Summarizer
}

// add measures an image of field k of n, and returns its statistics by band as geotiff:stats has them: min, max, mean,
// std, percentage of valid pixels, and the percentiles 25, 50, 75 and 95. It is nil if no pixel is valid; a band
// without a valid pixel beside others has NaN.
func (t *tally) add(k, n int, pixels *loader.Tensor, valid []byte) ([][]float64, error) {
	if t.fields == nil {
		t.fields = make([]*stats.Field, n)
	}
	bands := int(pixels.Shape[1])
	if t.fields[k] == nil {
		f, err := stats.NewField(pixels.DType, bands)
		if err != nil {
			return nil, err
		}
		t.fields[k] = f
	}
	size := pixels.DType.Size() // stats.NewField has refused dtypes without statistics
	count := len(valid) / bands
	out, none := make([][]float64, bands), true
	for b := range bands {
		line, of := pixels.Data[b*count*size:][:count*size], valid[b*count:][:count]
		if missing := bytes.Count(of, []byte{0}); missing > 0 {
			line = t.valid(line, of, size)
			t.fields[k].AddNoData(b, uint64(missing))
		}
		t.fields[k].AddRows(b, line)
		out[b] = t.bands.Of(line, pixels.DType, count)
		none = none && math.IsNaN(out[b][0])
	}
	if none {
		return nil, nil
	}
	return out, nil
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

// measure adds the statistics of a chip that has its own.
func (m *maker) measure(c *chip) error {
	if c.judged == nil || c.measured == nil {
		return nil
	}
	t := <-m.tallies
	defer func() { m.tallies <- t }()
	if err := t.merge(c.measured); err != nil {
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
		t := <-m.tallies
		fields := t.fields
		t.fields = nil
		m.tallies <- t
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
	for k, f := range total {
		of := f.Report()
		for b, name := range m.table.bands[k] {
			of.Bands[b].Name = name
		}
		r.Fields[m.recipe.Fields[k].Name] = of
	}
	return r, nil
}
