package survey

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/loader/resources"
	"github.com/chaski-eo/chaski/loader/rows"
	"github.com/chaski-eo/chaski/loader/spec"
	"github.com/chaski-eo/chaski/stats"
	"github.com/chaski-eo/chaski/stats/moments"
)

// Extent is the range of samples of a survey.
type Extent struct {
	Rows        int64  `json:"rows"`        // that the conditions and the split leave
	Fingerprint string `json:"fingerprint"` // of the dataset, as of an engine
}

// Share is a part of the samples of a survey: Count from First on, in a dataset of the extent Of. A nil *Share is all.
type Share struct {
	Of           Extent
	First, Count int64
}

// of returns which samples of a dataset of an extent the share has. A dataset that has not the extent Of is a fault of
// kind corrupt: it changed since it was divided.
func (s *Share) of(have Extent, dataset string) (first, count int64, err error) {
	switch {
	case s == nil:
		return 0, have.Rows, nil
	case have != s.Of:
		return 0, 0, fault.WithFile(fault.New(fault.Corrupt, "dataset", "it changed: %d samples with the fingerprint "+
			"%s, and %d with %s before", have.Rows, have.Fingerprint, s.Of.Rows, s.Of.Fingerprint), dataset)
	case s.First < 0 || s.Count < 0 || s.Count > s.Of.Rows-s.First:
		return 0, 0, fmt.Errorf("survey: samples %d to %d of %d", s.First, s.First+s.Count, s.Of.Rows)
	}
	return s.First, s.Count, nil
}

// Part is what Stats measures in some of a dataset's samples. Parts of one dataset and spec give the same report, in
// every bit, however its samples are divided.
type Part struct {
	Samples int64           `json:"samples"`
	Skipped int64           `json:"skipped"`
	Fields  []PartField     `json:"fields"` // in the order of the spec; a stack has one for each of its rasters
	Bad     map[int64]error `json:"-"`      // why some of the skipped samples, by row, cannot be read
}

// PartField has the statistics of one raster of a field.
type PartField struct {
	Name  string   `json:"name"`
	Bands []string `json:"bands"` // the band descriptions of the first file; nil if it has none
	// Physical says that they are of physical values.
	Physical bool `json:"physical,omitempty"`
	// Stats are the statistics of each dtype: of the first raster, and then of the others in the order of dtypes.
	Stats []*moments.Field `json:"-"`
	// State and States are the first of Stats and the others as bytes (moments.Field.AppendState), while written or
	// read.
	State  []byte   `json:"state"`
	States [][]byte `json:"states,omitempty"`
}

// of returns the statistics of a dtype, or nil.
func (f *PartField) of(dtype chunk.DType) *moments.Field {
	i := slices.IndexFunc(f.Stats, func(known *moments.Field) bool { return known.DType() == dtype })
	if i < 0 {
		return nil
	}
	return f.Stats[i]
}

// merge adds the samples of o, whose rasters may have other dtypes.
func (f *PartField) merge(o *moments.Field) error {
	if o.Bands() != f.Stats[0].Bands() {
		return fault.New(fault.Corrupt, "part", "the field %q has %d bands, and in others %d", f.Name,
			o.Bands(), f.Stats[0].Bands())
	}
	mine := f.of(o.DType())
	if mine == nil {
		mine, _ = moments.NewField(o.DType(), o.Bands()) // o was made of the same
		f.Stats = append(f.Stats, mine)
		slices.SortFunc(f.Stats[1:], func(a, b *moments.Field) int { return cmp.Compare(a.DType(), b.DType()) })
	}
	return mine.Merge(o)
}

// StatsPart is Stats of a share of the samples.
func StatsPart(
	ctx context.Context, sp spec.Spec, o resources.Options, share *Share, progress func(done, total int64),
) (p *Part, err error) {
	err = withTable(ctx, measured(sp), o, func(sp spec.Spec, o resources.Options, t *rows.Table) error {
		p, err = MeasureTable(ctx, sp, o, t, share, progress)
		return err
	})
	return p, err
}

// MeasureTable is StatsPart of an open table.
func MeasureTable(
	ctx context.Context, sp spec.Spec, o resources.Options, t *rows.Table, share *Share,
	progress func(done, total int64),
) (*Part, error) {
	selected, err := rows.Selected(ctx, t, sp.Root(), o)
	if err != nil {
		return nil, err
	}
	first, count, err := share.of(Extent{selected.Len(t.N), t.Fingerprint}, sp.Source)
	if err != nil {
		return nil, err
	}
	return measure(ctx, sp, o, t, selected, first, count, progress)
}

// maxPart bounds the JSON of a part, in bytes: the largest state of a field (moments.ParseStates) in base64.
const maxPart = 4 << 30 / 3

// Write writes the part for ReadPart.
func (p *Part) Write(w io.Writer) error {
	written := Part{Samples: p.Samples, Skipped: p.Skipped}
	for _, f := range p.Fields {
		f.State, f.States = f.Stats[0].AppendState(nil), nil
		for _, o := range f.Stats[1:] {
			f.States = append(f.States, o.AppendState(nil))
		}
		written.Fields = append(written.Fields, f)
	}
	// ReadPart would refuse it only after all other parts were made: one with too many bands, for example.
	if err := written.parse(); err != nil {
		return err
	}
	return json.NewEncoder(w).Encode(written)
}

// ReadPart reads a part, which may be from anyone: a wrong one is fault.Corrupt or fault.Limit.
func ReadPart(r io.Reader) (*Part, error) { return readPart(r, maxPart) }

// readPart is ReadPart of at most limit bytes.
func readPart(r io.Reader, limit int64) (*Part, error) {
	data, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err != nil {
		return nil, err
	}
	if int64(len(data)) > limit {
		return nil, fault.New(fault.Limit, "part", "over %d bytes", limit)
	}
	part := &Part{}
	if err := json.Unmarshal(data, part); err != nil {
		return nil, fault.Wrap(fault.Corrupt, "part", err)
	}
	err = part.parse()
	for i := range part.Fields {
		// The text is dropped once it is parsed, so it takes no memory.
		part.Fields[i].State, part.Fields[i].States = nil, nil
	}
	return part, err
}

// parse sets Stats from State in all fields.
func (p *Part) parse() error {
	if min(p.Samples, p.Skipped) < 0 {
		return fault.New(fault.Corrupt, "part", "%d samples and %d skipped", p.Samples, p.Skipped)
	}
	var states [][]byte
	for _, f := range p.Fields {
		states = append(append(states, f.State), f.States...)
	}
	parsed, err := moments.ParseStates(states)
	if err != nil {
		return err
	}
	for i := range p.Fields {
		field := &p.Fields[i]
		field.Stats = nil
		for _, o := range parsed[:1+len(field.States)] {
			if field.of(o.DType()) != nil || o.Bands() != parsed[0].Bands() {
				return fault.New(fault.Corrupt, "part", "field %q: states of %s do not fit together",
					field.Name, o.DType())
			}
			field.Stats = append(field.Stats, o)
		}
		parsed = parsed[1+len(field.States):]
	}
	return nil
}

// Merge adds what q measured. Parts with other fields are an error.
func (p *Part) Merge(q *Part) error {
	if len(p.Fields) != len(q.Fields) {
		return fault.New(fault.Corrupt, "part", "it has %d fields, and others %d", len(q.Fields), len(p.Fields))
	}
	for i, added := range q.Fields {
		field := &p.Fields[i]
		if added.Name != field.Name || !slices.Equal(added.Bands, field.Bands) {
			return fault.New(fault.Corrupt, "part",
				"it has the field %q, and others %q, or other bands", added.Name, field.Name)
		}
		for _, o := range added.Stats {
			if err := field.merge(o); err != nil {
				return err
			}
		}
	}
	p.Samples += q.Samples
	p.Skipped += q.Skipped
	return nil
}

// Report returns the statistics of the bands that the fields of the spec pick, in their order, or of all bands.
func (p *Part) Report(fields []spec.Field) *stats.Report {
	made := &stats.Report{
		Version: stats.ReportVersion, Samples: p.Samples, Skipped: p.Skipped, Fields: map[string]stats.FieldReport{},
	}
	for _, field := range p.Fields {
		report, _ := moments.Joined(field.Stats...) // of as many bands
		if len(field.Bands) == len(report.Bands) {
			for b := range report.Bands {
				report.Bands[b].Name = field.Bands[b]
			}
		}
		whole := made.Fields[field.Name]
		if whole.Bands == nil {
			whole.DType = report.DType // of a stack, the dtype of its first raster
		}
		whole.Bands = append(whole.Bands, report.Bands...)
		whole.Physical = whole.Physical || field.Physical
		made.Fields[field.Name] = whole
	}
	for _, field := range fields {
		if whole, ok := made.Fields[field.Name]; ok {
			made.Fields[field.Name] = picked(whole, &field)
		}
	}
	return made
}

// mapped returns the class that the look-up table of a field makes of each number that a band counts, nil without one.
func mapped(field *spec.Field, dtype chunk.DType, band *stats.Band) map[int64]int64 {
	table := field.LUT
	if table == nil || table.Bands() > 0 || table.OfColours() {
		return nil
	}
	classes := map[int64]int64{}
	for i, number := range table.Numbers(dtype) {
		value := table.To[i][0]
		if _, counted := band.Classes[int64(number)]; counted && (field.Fill == nil || float64(*field.Fill) != value) {
			if value != math.Trunc(value) || math.Abs(value) > 1<<32 {
				return nil
			}
			classes[int64(number)] = int64(value)
		}
	}
	return classes
}

// picked returns the report of the bands that a field picks.
func picked(whole stats.FieldReport, field *spec.Field) stats.FieldReport {
	bands := whole.Bands
	whole.Physical = whole.Physical || field.IsPhysical()
	if field.Bands != nil || field.BandNames != nil {
		whole.Picked, whole.Bands = true, nil
	}
	for _, i := range field.Bands {
		if i < len(bands) { // a part may be from anyone
			band := bands[i]
			band.Index = &i
			whole.Bands = append(whole.Bands, band)
		}
	}
	for _, name := range field.BandNames {
		i := slices.IndexFunc(bands, func(b stats.Band) bool { return b.Name == name })
		if i >= 0 {
			whole.Bands = append(whole.Bands, bands[i])
		}
	}
	if len(whole.Bands) == 1 {
		whole.LUT = mapped(field, whole.DType, &whole.Bands[0])
	}
	return whole
}
