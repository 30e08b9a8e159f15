package spec

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
)

// InSource adds the name of a source of the spec to an error.
func InSource(name string, err error) error { return within(fmt.Sprintf("source %q", name), err) }

// Mixture draws samples from several sources in fixed proportions. See docs/order.md.
type Mixture struct {
	// Sources are the sources of the mixture. Empty: the spec has one dataset, and no mixture.
	Sources []Source `json:"sources,omitempty"`
	// Temperature weights each source by its number of samples to the power of 1/Temperature: 1
	// draws in proportion to the sizes, more draws more evenly. Default: the weights of the sources.
	Temperature float64 `json:"temperature,omitempty"`
	// Until says when an epoch ends: "shortest" (default) before a source would repeat a sample,
	// "longest" after every source has given every sample, "length" after Length samples. A number stands for both.
	Until Text `json:"until,omitempty"`
	// Length is the number of samples of an epoch, with "length".
	Length int64 `json:"length,omitempty"`
	// PerBatch makes the shares exact in every global batch, and an epoch a whole number of
	// batches. Without it they are exact in every 10,000 samples in a row. A mixture in a mixture
	// can only have it if the outer one has it, too.
	PerBatch bool `json:"per_batch,omitempty"`
	// Batches is "one source" if every global batch comes wholly from one source, the same on all ranks. Sources may
	// then differ in bands, shapes, dtypes and steps of time. Shares are of batches: exact in every 10,000 in a row,
	// and in any stretch but for about one batch; an epoch is a whole number of batches. A mixture in a mixture can
	// only have it if the outer one has it, too. Default: batches are mixed, and all sources have one shape.
	Batches string `json:"batches,omitempty"`
}

// OneSource is the value of Mixture.Batches.
const OneSource = "one source"

// Source is one of the sources of a mixture: a dataset, or a mixture again.
type Source struct {
	// Name is the name of the source in errors and reports. Default: its number, from 0.
	Name string `json:"name,omitempty" hash:"place"`
	// Source is the path or URI of the dataset, as in Spec.
	Source    string `json:"source,omitempty" hash:"place"`
	Container `hash:"place"`
	// Dims names the dimensions of an array, as in Spec.
	Dims string `json:"dims,omitempty"`
	// Timestamp opens an array as it was in a range of time, as in Spec.
	Timestamp *Timestamp `json:"timestamp,omitempty"`
	// Fields overrides settings of the fields of the spec, by their names: column, pattern, blob,
	// bands, normalisation, fill, padding, resampling, wavelengths and ground sampling distance.
	Fields []Field `json:"fields,omitempty"`
	// Sampler replaces the sampler of the spec. Its windows must have the same size in the batch.
	Sampler *Sampler `json:"sampler,omitempty"`
	// Weight is the share of the source, relative to the other sources. Default 1.
	Weight float64 `json:"weight,omitempty"`
	// Count is the number of rows of the source in 10,000 positions, or with PerBatch in a global
	// batch, or with Batches of its batches in 10,000. The engine fills it in.
	Count int64 `json:"count,omitempty"`
	// More are columns that the engine reads beside those that the spec names. They need not exist.
	More []string `json:"-"`
	Subset
	Mixture
}

// Container has the options of a source that is a container.
type Container struct {
	// Parts are further containers, whose samples follow in order. Like Source, they are not part
	// of the spec hash.
	Parts []string `json:"parts,omitempty"`
	// BasePath is the directory of the containers of a TACOCAT or a TACOLLECTION.json. Default: the
	// directory beside it.
	BasePath string `json:"base_path,omitempty"`
}

// hasOptions reports whether a member is given that only mixtures have, beside their sources.
func (m *Mixture) hasOptions() bool {
	return m.Temperature != 0 || m.Until != "" || m.Length != 0 || m.PerBatch || m.Batches != ""
}

func (m Mixture) withDefaults() Mixture {
	if len(m.Sources) == 0 {
		return m
	}
	m.Until = cmp.Or(m.Until, UntilShortest)
	m.Until.countIn(&m.Length)
	m.Sources = slices.Clone(m.Sources)
	for i := range m.Sources {
		src := &m.Sources[i]
		if src.Sampler != nil {
			f := src.Sampler.withDefaults()
			src.Sampler = &f
		}
		src.Fields = slices.Clone(src.Fields)
		src.Subset = src.Subset.WithDefaults()
		src.Mixture = src.Mixture.withDefaults()
	}
	return m
}

// Named returns the name of the source, or i, its number in the mixture, if it has none.
func (s *Source) Named(i int) string {
	if s.Name != "" {
		return s.Name
	}
	return fmt.Sprint(i)
}

// Root returns the outermost source of a spec: its dataset or its mixture.
func (s *Spec) Root() Source {
	return Source{
		Source: s.Source, Container: s.Container, Dims: s.Dims, Timestamp: s.Timestamp,
		Subset: s.Subset, Mixture: s.Mixture,
	}
}

// walk calls visit for every source, the outermost first, with its depth in mixtures from 0.
func (s *Spec) walk(visit func(Source, int) error) error {
	var into func(Source, int) error
	into = func(src Source, depth int) error {
		if err := visit(src, depth); err != nil {
			return err
		}
		for i, c := range src.Sources {
			if err := into(c, depth+1); err != nil {
				return InSource(c.Named(i), err)
			}
		}
		return nil
	}
	return into(s.Root(), 0)
}

// inTime reports whether samples are sequences.
func (s *Spec) inTime() bool { return s.Sequence() != nil }

// Sequence returns how rows of the first source with sequences form them, or nil if samples are single rows. Of windows
// on the ground it has the length and the name of the validity.
func (s *Spec) Sequence() *Time {
	var first *Time
	_ = s.walk(func(src Source, _ int) error {
		if len(src.Sources) == 0 {
			first = cmp.Or(first, s.SequenceOf(&src))
		}
		return nil
	})
	return first
}

// SequenceOf returns Sequence of one source that is not a mixture.
func (s *Spec) SequenceOf(src *Source) *Time {
	if o := cmp.Or(src.Sampler, &s.Sampler); src.Time == nil && o.Kind == GeoWindow && o.Length > 0 {
		return &Time{Length: o.Length, Validity: DefaultValidity}
	}
	return src.Time
}

func (s *Spec) validateSources() error {
	fields := map[string]bool{}
	for _, field := range s.Fields {
		fields[field.Name] = true
	}
	n, steps := 0, s.Sequence()
	return s.walk(func(src Source, depth int) error {
		if n++; n > maxSources {
			return fmt.Errorf("over %d sources", maxSources)
		}
		if depth > maxMixed {
			return fmt.Errorf("mixtures in mixtures over %d deep", maxMixed)
		}
		if n := len(src.Source); n > maxPath {
			return fmt.Errorf("source is a path of %d bytes: at most %d are allowed", n, maxPath)
		}
		if err := src.validate(depth, fields); err != nil {
			return err
		}
		for _, field := range src.Fields {
			for _, f := range s.Fields {
				if field.Name == f.Name && (field.Vector != nil) != (f.Vector != nil) {
					return fmt.Errorf("field %q is one of shapes in the spec or in the source, not in both", field.Name)
				}
			}
		}
		if len(src.Sources) > 0 {
			return nil
		}
		// A batch has one tensor for all sources, so their sequences need one length and one name.
		mine := s.SequenceOf(&src)
		if s.Batches == OneSource {
			return nil
		}
		if (mine == nil) != (steps == nil) ||
			steps != nil && (mine.Length != steps.Length || mine.Validity != steps.Validity) {
			return errors.New(
				"time: all sources need sequences of the same length, with the same name for their validity")
		}
		return nil
	})
}

// validate checks a source as far as that is possible without its data. depth is the number of
// mixtures around it; fields holds the names of the fields of the spec.
func (s *Source) validate(depth int, fields map[string]bool) error {
	mixed := len(s.Sources) > 0
	switch {
	case mixed && (s.Source != "" || s.Parts != nil || s.BasePath != ""):
		return errors.New("both source and sources are given")
	case !mixed && s.Source == "":
		return errors.New("source is empty")
	case !mixed && s.Mixture.hasOptions():
		return errors.New("temperature, until, length, per_batch and batches are members of a mixture")
	case mixed && (s.IDList != "" || s.Tables != nil || s.Where != nil || s.BBoxCRS != 0 || s.Split != nil ||
		s.Use != "" || s.Strata != nil || s.Time != nil || s.Missing != "" ||
		depth > 0 && (s.Fields != nil || s.Sampler != nil)):
		return errors.New("rows, fields and samplers belong to the sources of a mixture, not to the mixture")
	case mixed && (s.Dims != "" || s.Timestamp != nil):
		return errors.New("dims and timestamp belong to the sources of a mixture")
	case s.Weight < 0 || s.Count < 0:
		return wrong("weight", s.Weight, "it must be above 0")
	}
	if err := cmp.Or(checkDims(s.Dims), s.Timestamp.validate(), s.validateFields(fields)); err != nil {
		return err
	}
	if s.Sampler != nil {
		if err := s.Sampler.validate(); err != nil {
			return err
		}
	}
	if mixed {
		return s.validateMixture()
	}
	return s.Subset.Validate()
}

// validateMixture checks the weights of the sources of a mixture, and the end of its epochs.
func (s *Source) validateMixture() error {
	for i := range s.Sources {
		if src := &s.Sources[i]; s.Temperature != 0 && src.Weight != 0 && src.Weight != 1 {
			return fmt.Errorf(
				"source %q has a weight, and the mixture a temperature, which weights sources by their sizes",
				src.Named(i))
		}
	}
	switch {
	case s.Batches != "" && s.Batches != OneSource:
		return wrong("batches", s.Batches, "it must be %q; without it they are mixed", OneSource)
	case s.Batches != "" && s.PerBatch:
		return fmt.Errorf("batches is %q, and per_batch is true: a batch has shares of several sources, or is of one",
			s.Batches)
	}
	return validUntil(s.Until, s.Length, s.Temperature)
}

// validateFields checks the overrides of a source. names holds the names of the fields of the spec.
func (s *Source) validateFields(names map[string]bool) error {
	ofSpec := withRole("spec")
	for _, field := range s.Fields {
		if !names[field.Name] {
			return fmt.Errorf("field %q: the spec has no field of this name", field.Name)
		}
		if firstMember(&field, func(name string) bool { return slices.Contains(ofSpec, name) }) != "" {
			return fmt.Errorf("field %q: scenes, match, match_days, kind, layout, sizes, dtype and validity are the "+
				"spec's", field.Name)
		}
		if !field.Beside() {
			// An override has no dtype, and Validate needs one. float32 allows every other member;
			// they are checked against the dtype of the spec's field when it is compiled.
			field.DType = "float32"
			if field.Clip {
				field.DType = "uint8" // which also allows them, but for a fill of NaN
			}
		}
		if err := field.Validate(); err != nil {
			return within(fmt.Sprintf("field %q", field.Name), err)
		}
	}
	return nil
}

// replaced lists members of a field that name one thing together, so one of an override replaces all: a column of
// the spec must not meet a pattern of the source.
var replaced = [][]string{{"column", "pattern", "blob"}, {"bands", "band_names", "by_position"}}

// normalizeSources is normalize for what sources change. Statistics have their numbers for the bands that the source
// reads, whether the field or the source picks them.
func (s *Spec) normalizeSources(sources []Source) error {
	for i := range sources {
		src := &sources[i]
		for k, field := range s.FieldsOf(src) {
			index := slices.IndexFunc(src.Fields, func(f Field) bool { return f.Name == field.Name })
			if index < 0 {
				continue
			}
			change := &src.Fields[index]
			picks := change.Bands != nil || change.BandNames != nil || change.ByPosition
			if change.Normalize == nil && !(picks && s.Fields[k].Normalize.byStats()) {
				continue
			}
			if err := field.normalize(); err != nil {
				return InSource(src.Named(i), within(fmt.Sprintf("field %q", field.Name), err))
			}
			change.Normalize = field.Normalize
		}
		if err := s.normalizeSources(src.Sources); err != nil {
			return InSource(src.Named(i), err)
		}
	}
	return nil
}

// FieldsOf returns the fields of the spec with the overrides of a source.
func (s *Spec) FieldsOf(src *Source) []Field {
	out := slices.Clone(s.Fields)
	for i := range out {
		for _, o := range src.Fields {
			if o.Name == out[i].Name {
				out[i].override(&o)
			}
		}
	}
	return out
}

// override sets the members that an override has.
func (f *Field) override(o *Field) {
	members, fixed := maps.Collect(eachMember(f)), append(withRole("spec"), withRole("fixed")...)
	for _, names := range replaced {
		if firstMember(o, func(name string) bool { return slices.Contains(names, name) }) == "" {
			continue
		}
		for _, name := range names {
			members[name].SetZero()
		}
	}
	for name, value := range eachMember(o) {
		if !value.IsZero() && !slices.Contains(fixed, name) {
			members[name].Set(value)
		}
	}
	f.setPhysical()
}
