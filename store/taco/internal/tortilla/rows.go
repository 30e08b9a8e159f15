package tortilla

import (
	"context"
	"slices"
	"strconv"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/tables"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/store"
	"github.com/chaski-eo/chaski/store/taco/internal/model"
)

// Names of columns.
const (
	ColID     = "tortilla:id"
	ColFormat = "tortilla:file_format"
	ColOffset = "tortilla:offset"
	ColLength = "tortilla:length"
	colSplit  = "tortilla:data_split"
	ColRoot   = "tortilla:root"
)

// nested is the format of samples that contain samples.
const nested = "TORTILLA"

// Limits on the memory of a column: equal values may take next to none in the file.
const (
	fewBytes     = 64 << 20
	bytesPerByte = 64
)

// sampleTable is a table of samples with the mandatory columns.
type sampleTable struct {
	tbl              *tables.Table
	ids, formats     *tables.Vector
	offsets, lengths *tables.Vector
	roots            *tables.Vector // nil if the table lacks this column of strings
}

func (t *sampleTable) len() int { return t.tbl.Len() }

// asLevel returns the rows as a level.
func (t *sampleTable) asLevel() *model.Level { return &model.Level{Table: t.tbl, IDs: t.ids} }

// readRows reads the table at a place of a file. part names it in errors.
func readRows(ctx context.Context, r source.Reader, at span, part string) (*sampleTable, error) {
	tbl, err := model.ReadTable(ctx, r, at, fewBytes+bytesPerByte*at.Size)
	if err != nil {
		return nil, fault.WithPart(err, part, 0)
	}
	t := &sampleTable{tbl: tbl}
	wants := []model.Want{{To: &t.ids, Name: ColID, Kind: tables.String},
		{To: &t.formats, Name: ColFormat, Kind: tables.String}, {To: &t.offsets, Name: ColOffset, Kind: tables.Int64},
		{To: &t.lengths, Name: ColLength, Kind: tables.Int64}}
	if i := tbl.Index(ColRoot); i >= 0 && tbl.Columns()[i].Type.Kind == tables.String {
		wants = append(wants, model.Want{To: &t.roots, Name: ColRoot, Kind: tables.String})
	}
	if err := model.Columns(ctx, tbl, wants...); err != nil {
		return nil, fault.WithPart(err, part, fault.NoOffset)
	}
	return t, nil
}

// folder reports whether a row contains samples.
func (t *sampleTable) folder(i int) bool {
	return !t.formats.Null(i) && string(t.formats.Bytes(i)) == nested
}

// nextFolder returns the first row from i on with nested samples, or -1.
func (t *sampleTable) nextFolder(i int) int {
	for ; i < t.len(); i++ {
		if t.folder(i) {
			return i
		}
	}
	return -1
}

// span returns the place of a row's bytes, which must lie between lo and hi in a file whose offsets
// are counted from base.
func (t *sampleTable) span(i int, base, lo, hi int64) (span, error) {
	if t.offsets.Null(i) || t.lengths.Null(i) {
		return span{}, fault.New(fault.Corrupt, "row "+strconv.Itoa(i), "%s or %s is null", ColOffset, ColLength)
	}
	s := span{Off: t.offsets.Int(i), Size: t.lengths.Int(i)}
	if !s.In(lo-base, hi-base) {
		return s, fault.New(fault.Corrupt, "row "+strconv.Itoa(i),
			"%d bytes at %d do not lie between %d and %d", s.Size, s.Off, lo-base, hi-base)
	}
	return span{Off: base + s.Off, Size: s.Size}, nil
}

// entry returns id and kind of a row.
func (t *sampleTable) entry(i int) (e store.Entry, err error) {
	switch {
	case t.ids.Null(i) || len(t.ids.Bytes(i)) == 0:
		return e, fault.New(fault.Corrupt, "row "+strconv.Itoa(i), "%s is null or empty", ColID)
	case t.formats.Null(i):
		return e, fault.New(fault.Corrupt, "row "+strconv.Itoa(i), "%s is null", ColFormat)
	}
	e.ID, e.Folder = t.ids.Str(i), t.folder(i)
	return e, nil
}

// unknownSplits returns the number of splits whose names are not in the specification.
func (t *sampleTable) unknownSplits(ctx context.Context) (n int, err error) {
	if t.tbl.Index(colSplit) < 0 {
		return 0, nil
	}
	split, err := t.tbl.Column(ctx, colSplit)
	if err != nil {
		return 0, err
	}
	for i := range t.len() {
		known := split.Kind() == tables.String && slices.Contains(splits, split.Str(i))
		if !split.Null(i) && !known {
			n++
		}
	}
	return n, nil
}

// splits are the splits of the specification.
var splits = []string{"train", "test", "validation"}
