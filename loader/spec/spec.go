package spec

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/chaski-eo/chaski/loader/batch"
	"github.com/chaski-eo/chaski/shuffle"
	"github.com/chaski-eo/chaski/shuffle/steps"
)

// SpecVersion is the version of the JSON form of Spec.
const SpecVersion = 1

// Spec describes the batches of a run. With the fingerprint of the dataset it determines every byte
// of every batch. The number of workers, ranks and servers changes no batch.
type Spec struct {
	// Version is the version of the spec. Default and only value: 1.
	Version int `json:"version"`
	// Source is the path or URI of the dataset: a catalog (.parquet), a table of samples (.csv,
	// .parquet), a container, a directory, a glob, one file, or the directory of a TileDB array
	// or of a Zarr array or group.
	// The spec hash leaves it out, so a run resumes after its data has moved.
	Source    string `json:"source" hash:"place"`
	Container `hash:"place"`
	// Dims names the dimensions of an array in their order: n, b, y and x, and t of a Zarr array. An
	// array may lack n, t and b. Default: the names that the array has for them.
	Dims string `json:"dims,omitempty"`
	// Timestamp opens an array as it was in a range of time: only fragments that were written in
	// this range are read. Default: all fragments.
	Timestamp *Timestamp `json:"timestamp,omitempty"`
	// Fields are the fields of a sample, in the order of the batch. Default: one raster field
	// "image". JSON may have an object of fields by name, where a string stands for the column or, with a name
	// such as {id}, the pattern of a field.
	Fields []Field `json:"fields"`
	// AllFields applies the settings of the only entry of Fields to every field of a catalog of
	// pairs. It has no effect on other datasets. Open sets it if Fields is empty. The spec of an open
	// engine lists the fields that were found.
	AllFields bool `json:"all_fields,omitempty"`
	// BatchSize is the number of samples of a global batch, over all ranks: 1 to 1,048,576.
	BatchSize int `json:"batch_size"`
	// Shuffle gives every epoch an order of its own. Without it samples come in the order of the
	// dataset.
	Shuffle bool `json:"shuffle"`
	// Blocks shuffles blocks of rows that are read together, in place of all rows. It needs Shuffle.
	Blocks *Blocks `json:"blocks,omitempty"`
	// Seed decides the order of the samples, their windows, flips and rotations.
	Seed uint64 `json:"seed"`
	// Last says what becomes of the last global batch of an epoch if it is short: "short" (default)
	// gives it with the rows that there are, "drop" leaves it out, "pad" adds rows that are not valid,
	// so all batches have one shape. A rank gets a row with valid = false where it would have
	// none, and with "pad" where other ranks have one more.
	Last string `json:"last,omitempty"`
	// Take is the number of samples of an epoch. The next epoch continues where this one ends, so
	// every sample comes once before any comes again. Default: as many samples as the dataset has.
	Take int64 `json:"take,omitempty"`
	// Sampler says which window of a sample is read. Default: the whole chip.
	Sampler Sampler `json:"sampler"`
	// BadSamples says what happens to samples that cannot be read: "error" (default) ends the run,
	// "skip" marks the row as not valid, "replace" reads another sample, "fill" keeps what can be
	// read: fields that cannot are nodata, of a sequence only their steps that cannot. "there.NAME",
	// uint8 (n) or for fields with steps (n t), says for each field where it is there.
	BadSamples string `json:"bad_samples"`
	// BadLimit ends an epoch with an error if a loader meets more bad samples in it. Default: no
	// limit.
	BadLimit *BadLimit `json:"bad_limit,omitempty" hash:"rule"`
	// Augment is a set of flips and rotations: "flip_x", "flip_y", "flips", "rotations" or "d4".
	// Every sample gets one of the set. Default: none.
	Augment string `json:"augment,omitempty"`
	// Windows adds the int64 tensor "window" (n, 4) to batches: y, x, height and width of the window
	// of each row in pixels of its first raster field, before it is resampled or turned; -1 without
	// a sample. With several windows of a sample it is (n, v, 4).
	Windows bool `json:"windows,omitempty"`
	// Geo adds to batches where the window of each row lies on the ground: "geo.transform", which converts pixel
	// corners of the tensor to coordinates as GDAL's geotransform does, "geo.epsg", "geo.bounds" (least x and y,
	// greatest x and y), "geo.lonlat" of the centre in degrees, and "geo.gsd", the size of a pixel in metres. Without a
	// place they are NaN, and the EPSG code 0. "geo.time" has microseconds since 1970 UTC, the least int64 where there
	// is no time: of the column that orders sequences, the column of "newest" and "oldest", the first of
	// istac:time_start, stac:time_start and datetime, or the coordinate of t or n of an array.
	Geo bool `json:"geo,omitempty"`
	// Strict makes it an error to read a chunk or shard whose object is missing from a Zarr store. By default the
	// pixels of such a chunk are the fill value of the array, as Zarr has it, so a server that lost an object goes
	// unnoticed.
	Strict bool `json:"strict,omitempty"`
	// Only, if it has names, makes batches of the same samples with these members alone, so that no pixel is read. It
	// may name fields that are metadata columns, and "id", a string tensor (n) with the path of the first raster of
	// each row, as the dataset has it, or the id of the row.
	Only []string `json:"only,omitempty"`
	// Subset selects rows of Source and groups them.
	Subset
	// Mixture draws from several sources in place of Source.
	Mixture
}

// BadLimit bounds the bad samples that one loader may meet in an epoch. A loader counts the rows of
// its own rank.
type BadLimit struct {
	// Count is the number of bad rows that are allowed, at least 0. Default: any number.
	Count *int64 `json:"count,omitempty"`
	// Rate is the share of the rank's rows of a whole epoch that may be bad, from 0 to 1. Default:
	// any share.
	Rate *float64 `json:"rate,omitempty"`
}

// Policies for bad samples.
const (
	BadError   = "error"   // ends the run
	BadSkip    = "skip"    // the row is not valid
	BadReplace = "replace" // another sample takes its place
	// BadFill keeps the fields that can be read, and of a sequence their good steps. The others are missing, and the
	// row is valid if any field is there.
	BadFill = "fill"
)

// Lasts are the values of Spec.Last.
var Lasts = []string{steps.LastShort, steps.LastDrop, steps.LastPad}

// Cut returns how an epoch becomes batches.
func (s Spec) Cut() steps.Cut { return steps.Cut{BatchSize: s.BatchSize, Last: s.Last} }

// BadCounter returns the counter of the bad rows of one rank of world loaders that share epochs of n samples.
func (s Spec) BadCounter(n int64, rank, world int) batch.BadCounter {
	rows := steps.RankRows(n, s.BatchSize, rank, world, s.Cut().Drops())
	return batch.NewBadCounter((*batch.BadLimit)(s.BadLimit), rows, rank, world)
}

// BadPolicies are the values of Spec.BadSamples.
var BadPolicies = []string{BadError, BadSkip, BadReplace, BadFill}

// WithDefaults returns a copy of the spec in which every default is filled in.
func (s Spec) WithDefaults() Spec {
	s.Version = cmp.Or(s.Version, SpecVersion)
	s.Sampler = s.Sampler.withDefaults()
	s.Subset = s.Subset.WithDefaults()
	s.Mixture = s.Mixture.withDefaults()
	s.BadSamples, s.Last = cmp.Or(s.BadSamples, BadError), cmp.Or(s.Last, steps.LastShort)
	if len(s.Fields) == 0 {
		s.Fields = []Field{{Name: "image"}}
	}
	// The copy of s still shares the slice with the caller, whose fields must not change.
	s.Fields = slices.Clone(s.Fields)
	besideLast(s.Fields) // RowFields below needs this order
	_ = s.normalize()    // Validate returns the error, because defaults have no way to
	for i := range RowFields(s.Fields) {
		field := &s.Fields[i]
		if field.Vector != nil {
			continue
		}
		field.DType = cmp.Or(field.DType, "native")
		field.setPhysical()
		if field.Classes != nil || field.Split != "" {
			field.Kind = cmp.Or(field.Kind, ClassField)
		}
	}
	return s
}

// normalize puts scales and offsets in place of other forms of normalisation. Sources come first, because a
// source that picks other bands needs the method of the field, and not the numbers that it makes of the field's bands.
func (s *Spec) normalize() error {
	if err := s.normalizeSources(s.Sources); err != nil {
		return err
	}
	for i := range s.Fields {
		if err := s.Fields[i].normalize(); err != nil {
			return within(fmt.Sprintf("field %q", s.Fields[i].Name), err)
		}
	}
	return nil
}

// Validate checks a spec with defaults as far as that is possible without the dataset. The error
// names the member, its value and the rule.
func (s Spec) Validate() error { return within("spec", s.validate()) }

func (s *Spec) validate() error {
	switch {
	case s.Version != SpecVersion:
		return fmt.Errorf("version %d; this is version %d", s.Version, SpecVersion)
	case s.Source == "" && len(s.Sources) == 0:
		return errors.New("source is empty")
	case s.Source != "" && len(s.Sources) > 0:
		return errors.New("both source and sources are given")
	case s.BatchSize < 1 || s.BatchSize > maxBatch:
		return wrong("batch_size", s.BatchSize, "it must be from 1 to %d", maxBatch)
	case !slices.Contains(BadPolicies, s.BadSamples):
		return wrong("bad_samples", s.BadSamples, "it must be one of %s", strings.Join(BadPolicies, ", "))
	case !slices.Contains(Lasts, s.Last):
		return wrong("last", s.Last, "it must be one of %s", strings.Join(Lasts, ", "))
	case s.Take < 0 || s.Take > maxSamples:
		return wrong("take", s.Take, "it must be from 1 to %d samples, or 0 for all", int64(maxSamples))
	case s.AllFields && len(s.Fields) != 1:
		return fmt.Errorf("all_fields with %d fields: it takes the settings of one", len(s.Fields))
	case len(s.Fields) > maxFields:
		return fmt.Errorf("%d fields, at most %d", len(s.Fields), maxFields)
	}
	if err := cmp.Or(s.Sampler.validate(), s.Blocks.validate(s)); err != nil {
		return err
	}
	if _, err := s.Elements(); err != nil {
		return err
	}
	if err := cmp.Or(s.BadLimit.validate(s.BadSamples), s.validateGround(), s.validateSources()); err != nil {
		return err
	}
	// Every batch has these members, so a field of the same name would hide one of them.
	names := map[string]bool{"valid": true, "position": true, "sample": true}
	for _, n := range s.extras() {
		if names[n] {
			return twoMembers(n)
		}
		names[n] = true
	}
	if n := len(RowFields(s.Fields)); n < len(s.Fields) && (n == 0 || s.inTime() && s.Sequence().Key != "") {
		return errors.New("shapes lie in the windows of a raster field, and sequences of rows have none: " +
			"leave out time, or take rasters of the shapes")
	}
	for _, field := range s.Fields {
		if err := field.Validate(); err != nil {
			return within(fmt.Sprintf("field %q", field.Name), err)
		}
		for _, member := range field.members() {
			// `geo` and `windows` add them: a field of this name would be taken for one.
			if member == "geo" || member == "window" {
				return fmt.Errorf("field %q: %q is the name of the place of a window: name it differently",
					field.Name, member)
			}
			if member != "" && names[member] && member == field.Validity {
				return fmt.Errorf("field %q: validity is %q: another member of the batch has this name, "+
					"so give the mask its own, such as %q", field.Name, member, field.Name+"_valid")
			}
			if member != "" && names[member] {
				return twoMembers(member)
			}
			names[member] = true
		}
	}
	return nil
}

// Augments are the names that Spec.Augment takes besides "", which augments nothing.
var Augments = []string{"flip_x", "flip_y", "flips", "rotations", "d4"}

// sets maps the names that Spec.Augment takes to the flips and rotations of each set.
var sets = map[string]shuffle.Elements{
	"": 0, "flip_x": shuffle.FlipsX, "flip_y": shuffle.FlipsY, "flips": shuffle.Flips,
	"rotations": shuffle.Rotations, "d4": shuffle.D4,
}

// Elements returns the flips and rotations of Spec.Augment. The error names the sets that there
// are.
func (s Spec) Elements() (shuffle.Elements, error) {
	g, ok := sets[s.Augment]
	if !ok {
		return 0, wrong("augment", s.Augment, "it must be one of %s", strings.Join(Augments, ", "))
	}
	return g, nil
}

func (b *BadLimit) validate(policy string) error {
	const useless = `the run ends at the first bad sample: a limit needs the policy "skip", "replace" or "fill"`
	switch {
	case b == nil:
		return nil
	case b.Count != nil && policy == BadError:
		return wrong("bad_limit.count", *b.Count, useless)
	case b.Rate != nil && policy == BadError:
		return wrong("bad_limit.rate", *b.Rate, useless)
	case b.Count != nil && *b.Count < 0:
		return wrong("bad_limit.count", *b.Count, "it must be at least 0")
	// The negation also refuses NaN, for which every comparison is false.
	case b.Rate != nil && !(*b.Rate >= 0 && *b.Rate <= 1):
		return wrong("bad_limit.rate", *b.Rate, "it must be from 0 to 1")
	}
	return nil
}

// twoMembers returns the error about two members of a batch with one name.
func twoMembers(name string) error {
	return fmt.Errorf("two members of a batch are called %q, which has \"valid\", \"position\" and \"sample\" of its "+
		"own: name a field or a mask differently", name)
}
