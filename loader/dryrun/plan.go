package dryrun

import (
	"context"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/loader/pixels"
	"github.com/chaski-eo/chaski/shuffle"
)

// Row describes the assets, windows and reads of a row of a batch.
type Row struct {
	Row      int   `json:"row"`
	Position int64 `json:"position"` // -1 for padding; then nothing else is set
	// Draw is the sample. In a mixture it has the number of its dataset in the plan.
	Draw shuffle.Draw `json:"draw"`
	// Source is the name of the sample's source; empty if the spec has one source. Dataset is the
	// path of its table.
	Source  string `json:"source,omitempty"`
	Dataset string `json:"dataset"`
	// Probability is the chance of the sample in each draw by the weights of the step; 0 without weights.
	Probability float64 `json:"probability,omitempty"`
	// ID names the sample: see catalog.Table.ID.
	ID     string  `json:"id"`
	Assets []Asset `json:"assets"`
	// Err is why the sample is bad, if headers and tables show it; otherwise nil.
	Err error `json:"-"`
	// Error is Err on one line.
	Error string `json:"error,omitempty"`
}

// Asset describes the reads of an asset.
type Asset struct {
	Field string `json:"field"`
	Step  int    `json:"step"`           // of a sequence
	View  int    `json:"view,omitempty"` // of a sample with several windows
	// Part is the column or pattern of a part of a stack; empty for other assets.
	Part string `json:"part,omitempty"`
	// Raster is the field, or the part of a stack. Key names the asset among those that share chunks.
	Raster *pixels.Raster `json:"-"`
	Key    pixels.TileKey `json:"-"`
	// Resampled is true for a part that lies on another grid than its stack, and for a scene that lies on another grid
	// than a window on the ground. Window is then the box of the part or scene that it needs.
	Resampled bool `json:"resampled,omitempty"`
	// Overview is the number of the overview that is read in place of the raster, from 0 for the largest; nil for the
	// raster itself. Size, Window and Chunks then describe the overview.
	Overview *int `json:"overview,omitempty"`
	// Row is the row of the table. It is -1 for a step that does not exist; then nothing else is
	// set.
	Row    int64       `json:"row"`
	URI    string      `json:"uri"`
	Size   shuffle.Box `json:"size"`   // of the asset, at 0, 0
	Window shuffle.Box `json:"window"` // in the asset's own pixels, before the row's transform
	// Runs are the byte ranges that are read, Chunks the chunks in them, in the order in which they
	// are decoded. The ranges of the asset's mask follow. Of a chunk that is decoded in pieces, reading stops
	// after the last row of the window. A chunk of an array has no byte range here:
	// its runs lie in the array's files, as a worker reads them that has not read the array
	// before.
	Runs   []Range            `json:"runs"`
	Chunks []pixels.ReadChunk `json:"chunks"`
	// Remote is true if the runs are of files in a store, and Kept if a cache on disk keeps them: if a catalog has the
	// file's entity tag, or none has its size, so opening it asks for both.
	Remote bool `json:"-"`
	Kept   bool `json:"-"`
	// Gap is the gap, in bytes, over which two runs of a file in a store are read as one.
	Gap int64 `json:"-"`
	// Known is true if a catalog has what opening the file needs, so it takes no request.
	Known bool `json:"-"`
	// Object is the file as Options.Disk of the engine names it, and Start where the asset begins in it; nil if that
	// keeps none of it.
	Object any   `json:"-"`
	Start  int64 `json:"-"`

	// Again reads the asset once more, by a reader that may share tiles and know the array already.
	Again func(ctx context.Context, r *pixels.DryReader) error `json:"-"`
}

// Range is a range of bytes in a file.
type Range = pixels.ReadRange

// Note keeps an error that a bad-sample policy covers. Of several it keeps the one whose text sorts first, as a run
// does. It reports whether to stop, and returns the error if no policy covers it.
func (r *Row) Note(err error) (stop bool, _ error) {
	if fault.KindOf(err) == 0 {
		return true, err
	}
	if r.Err == nil || r.Err.Error() > err.Error() {
		r.Err, r.Error = err, fault.Line(err)
	}
	return r.Draw.Attempt > 0, nil
}
