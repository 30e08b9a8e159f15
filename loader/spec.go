package loader

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/chaski-eo/chaski/chunk"
)

// SpecVersion is the version of Spec's JSON.
const SpecVersion = 1

// Spec says which batches a dataset gives. Together with the dataset's fingerprint it determines
// every byte of every batch; how many workers, ranks or servers there are does not.
type Spec struct {
	// Version is SpecVersion.
	Version int `json:"version"`
	// Source is a catalog (.parquet), a table of samples (.csv, .parquet), a directory, a glob, or
	// one file. It is not part of the spec hash: data may move.
	Source string `json:"source"`
	// Fields of a sample, in the order of the batch. Default: one raster field "image".
	Fields []Field `json:"fields"`
	// BatchSize is G, the samples of a global batch, over all ranks.
	BatchSize int `json:"batch_size"`
	// Shuffle gives every epoch an order of its own; without it samples come in dataset order.
	Shuffle bool `json:"shuffle"`
	// Seed of the order and the windows.
	Seed uint64 `json:"seed"`
	// DropLast leaves out the last, short global batch of an epoch.
	DropLast bool `json:"drop_last,omitempty"`
	// Sampler says which window of a sample is read. Default: the whole chip.
	Sampler Sampler `json:"sampler"`
	// BadSamples is the policy for samples that cannot be read: "error" (default) or "skip".
	BadSamples string `json:"bad_samples"`
}

// Field is one named member of a sample.
type Field struct {
	Name string `json:"name"`
	// Column is the table's column that holds the raster's path, or the value that rides along.
	// Default for a catalog, directory or glob: its assets.
	Column string `json:"column,omitempty"`
	// Blob is the column that holds the raster's header blob (rumi or chunk index), if any.
	Blob string `json:"blob,omitempty"`
	// Pattern pairs files by what {id} stands for in their paths below the source: "masks/{id}.tif".
	Pattern string `json:"pattern,omitempty"`

	// Bands picks bands by zero-based index, in this order; repeats are fine. Default: all.
	Bands []int `json:"bands,omitempty"`
	// DType of the tensor: "native" (default), "float32", "float16", "bfloat16" or "uint8".
	DType string `json:"dtype,omitempty"`
	// Layout is an einops pattern over the axes n b y x. Default "n b y x".
	Layout string `json:"layout,omitempty"`
	// Sizes gives lengths to names of the layout that are not axes.
	Sizes map[string]int `json:"sizes,omitempty"`
	// Normalize maps samples to float values. Default: none.
	Normalize *Normalize `json:"normalize,omitempty"`
	// Fill is the element for nodata samples and padding, in units of the result. Pixels that a file's
	// mask takes out (chunk.Index.Mask) are nodata like any other. Without it, padding is 0, and nodata
	// samples are 0 where the field is normalised and kept where not.
	Fill *Float `json:"fill,omitempty"`
	// Pad lets a window reach past the edge of the asset, filled; without it, windows are moved
	// inside and assets smaller than the window are an error.
	Pad bool `json:"pad,omitempty"`
	// Validity names a further uint8 tensor of the same layout: 1 where a sample is valid, 0 where it
	// is nodata, masked or padding.
	Validity string `json:"validity,omitempty"`
}

// Normalize is y = f32(f32(x*Scale) + Offset), then clipped. Scale and Offset have one value a
// picked band or one for all; they are rounded to float32 once.
type Normalize struct {
	Scale  []float64 `json:"scale"`
	Offset []float64 `json:"offset"`
	// Clip bounds the result to [Clip[0], Clip[1]].
	Clip *[2]Float `json:"clip,omitempty"`
}

// Sampler kinds.
const (
	WholeChip    = "chip"
	RandomWindow = "random_window"
)

// Sampler says which window of a sample is read.
type Sampler struct {
	// Kind is WholeChip (default) or RandomWindow.
	Kind string `json:"kind"`
	// Height and Width of the window in pixels of the first raster field.
	Height int `json:"height,omitempty"`
	Width  int `json:"width,omitempty"`
	// PerAsset is the number of samples an epoch takes from each asset. Default 1.
	PerAsset int `json:"per_asset,omitempty"`
}

// Bad-sample policies.
const (
	BadError = "error"
	BadSkip  = "skip"
)

// Limits of a spec.
const (
	maxFields    = 64
	maxBatch     = 1 << 20
	maxPerAsset  = 1 << 20
	maxWindow    = 1 << 16
	maxSpecBytes = 1 << 20
)

// ParseSpec reads a spec's JSON, fills in defaults and checks it. Unknown members are an error.
func ParseSpec(b []byte) (Spec, error) {
	var s Spec
	if len(b) > maxSpecBytes {
		return s, fmt.Errorf("spec: %d bytes, at most %d", len(b), maxSpecBytes)
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(&s); err != nil {
		return s, fmt.Errorf("spec: %w", err)
	}
	if _, err := d.Token(); err != io.EOF {
		return s, errors.New("spec: more follows the JSON value")
	}
	s = s.WithDefaults()
	return s, s.Validate()
}

// WithDefaults returns the spec with every default filled in. It does not change s.
func (s Spec) WithDefaults() Spec {
	if s.Version == 0 {
		s.Version = SpecVersion
	}
	if s.Sampler.Kind == "" {
		s.Sampler.Kind = WholeChip
	}
	if s.Sampler.PerAsset == 0 {
		s.Sampler.PerAsset = 1
	}
	if s.BadSamples == "" {
		s.BadSamples = BadError
	}
	if len(s.Fields) == 0 {
		s.Fields = []Field{{Name: "image"}}
	}
	s.Fields = slices.Clone(s.Fields)
	for i := range s.Fields {
		f := &s.Fields[i]
		if f.DType == "" {
			f.DType = "native"
		}
		if f.Layout == "" {
			f.Layout = "n b y x"
		}
	}
	return s
}

// Validate checks what can be checked without the dataset. The error names the member.
func (s Spec) Validate() error {
	switch {
	case s.Version != SpecVersion:
		return fmt.Errorf("spec: version %d; this is version %d", s.Version, SpecVersion)
	case s.Source == "":
		return errors.New("spec: source is empty")
	case s.BatchSize < 1 || s.BatchSize > maxBatch:
		return fmt.Errorf("spec: batch_size %d is not in 1..%d", s.BatchSize, maxBatch)
	case s.BadSamples != BadError && s.BadSamples != BadSkip:
		return fmt.Errorf("spec: bad_samples %q is neither %q nor %q", s.BadSamples, BadError, BadSkip)
	case len(s.Fields) > maxFields:
		return fmt.Errorf("spec: %d fields, at most %d", len(s.Fields), maxFields)
	}
	if err := s.Sampler.validate(); err != nil {
		return err
	}
	names := map[string]bool{"valid": true, "position": true, "sample": true} // what a batch has anyway
	for _, f := range s.Fields {
		if err := f.validate(); err != nil {
			return fmt.Errorf("spec: field %q: %w", f.Name, err)
		}
		for _, n := range []string{f.Name, f.Validity} {
			if n != "" && names[n] {
				return fmt.Errorf("spec: two members of a batch are called %q", n)
			}
			names[n] = true
		}
	}
	return nil
}

func (s Sampler) validate() error {
	switch s.Kind {
	case WholeChip:
		if s.PerAsset != 1 {
			return fmt.Errorf("spec: sampler: per_asset %d needs a window sampler", s.PerAsset)
		}
		if s.Height < 0 || s.Width < 0 || s.Height > maxWindow || s.Width > maxWindow || (s.Height == 0) != (s.Width == 0) {
			return fmt.Errorf("spec: sampler: chip of %d by %d pixels", s.Height, s.Width)
		}
	case RandomWindow:
		if s.Height < 1 || s.Width < 1 || s.Height > maxWindow || s.Width > maxWindow {
			return fmt.Errorf("spec: sampler: window of %d by %d pixels", s.Height, s.Width)
		}
		if s.PerAsset < 1 || s.PerAsset > maxPerAsset {
			return fmt.Errorf("spec: sampler: per_asset %d is not in 1..%d", s.PerAsset, maxPerAsset)
		}
	default:
		return fmt.Errorf("spec: sampler: no kind %q; there are %q and %q", s.Kind, WholeChip, RandomWindow)
	}
	return nil
}

func (f Field) validate() error {
	switch {
	case f.Name == "":
		return errors.New("has no name")
	case f.Column != "" && f.Pattern != "":
		return errors.New("both column and pattern are given")
	case len(f.Bands) > chunk.MaxBands:
		return fmt.Errorf("%d bands", len(f.Bands))
	}
	for _, b := range f.Bands {
		if b < 0 || b >= chunk.MaxBands {
			return fmt.Errorf("band %d", b)
		}
	}
	switch f.DType {
	case "native", "float32", "float16", "bfloat16", "uint8":
	default:
		return fmt.Errorf("dtype %q is none of native, float32, float16, bfloat16, uint8", f.DType)
	}
	if f.Fill != nil && math.IsNaN(float64(*f.Fill)) && f.DType == "uint8" {
		return errors.New("fill NaN does not exist in uint8")
	}
	return f.Normalize.validate(f.DType)
}

func (n *Normalize) validate(dtype string) error {
	if n == nil {
		return nil
	}
	if dtype == "native" {
		return errors.New("normalize needs a dtype: float32, float16, bfloat16 or uint8")
	}
	if len(n.Scale) == 0 || len(n.Scale) != len(n.Offset) {
		return fmt.Errorf("normalize: %d scales and %d offsets", len(n.Scale), len(n.Offset))
	}
	for i := range n.Scale {
		if tooFine(n.Scale[i]) || tooFine(n.Offset[i]) {
			return fmt.Errorf("normalize: scale %g and offset %g are not numbers of float32", n.Scale[i], n.Offset[i])
		}
	}
	if n.Clip != nil && !(n.Clip[0] <= n.Clip[1]) {
		return fmt.Errorf("normalize: clip [%g, %g]", n.Clip[0], n.Clip[1])
	}
	return nil
}

// tooFine reports whether rounding to float32 makes nothing or infinity of a number.
func tooFine(v float64) bool {
	f := float64(float32(v))
	return math.IsNaN(v) || math.IsInf(f, 0) || f == 0 && v != 0
}
