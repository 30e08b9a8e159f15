package spec

import (
	"slices"
	"strings"
)

// Placeless returns a copy of the spec without the members that change no byte of a batch: paths,
// names of sources and rules about faults. The spec hash is computed from it, so that a run resumes
// after its data has moved.
func (s Spec) Placeless() Spec {
	// BadLimit and Missing only end or refuse a run, so that a user may change them to continue.
	s.Source, s.Container, s.BadLimit, s.Missing = "", Container{}, nil, ""
	s.Fields = placelessFields(s.Fields)
	s.Sampler = s.Sampler.placeless()
	var strip func(list []Source) []Source
	strip = func(list []Source) []Source {
		list = slices.Clone(list)
		for i := range list {
			src := &list[i]
			src.Name, src.Source, src.Container, src.Missing = "", "", Container{}, ""
			src.Fields = placelessFields(src.Fields)
			if src.Sampler != nil {
				f := src.Sampler.placeless()
				src.Sampler = &f
			}
			src.Sources = strip(src.Sources)
		}
		return list
	}
	s.Sources = strip(s.Sources)
	return s
}

// Places returns a key made of the paths and names that Placeless removes. The spec hash does not cover them,
// but an engine depends on them. For a spec of one source it is the path of the source.
func (s Spec) Places() string {
	var b strings.Builder
	points := func(fields []Field) {
		for _, field := range fields {
			if field.Points != nil {
				b.WriteString("\x00" + field.Points.Array)
			}
			if field.Vector != nil {
				b.WriteString("\x00" + field.Vector.Path)
			}
			for _, p := range field.Scenes {
				b.WriteString("\x00scenes " + p)
			}
		}
	}
	points(s.Fields)
	_ = s.walk(func(src Source, depth int) error {
		if depth > 0 {
			b.WriteString("\x00" + src.Name + "\x00")
		}
		b.WriteString(src.Source)
		for _, p := range src.Parts {
			b.WriteString("\x00" + p)
		}
		if src.BasePath != "" {
			// "at " keeps a base path apart from a part of the same path.
			b.WriteString("\x00at " + src.BasePath)
		}
		if src.Sampler != nil {
			src.Sampler.places(&b)
		}
		points(src.Fields)
		return nil
	})
	s.Sampler.places(&b)
	return b.String()
}

// places writes the paths of the sampler.
func (s *Sampler) places(b *strings.Builder) {
	if s.Weights != "" {
		b.WriteString("\x00" + s.Weights)
	}
	if s.ROI != "" {
		b.WriteString("\x00within " + string(s.ROI))
	}
}

// placeless returns the sampler without the paths of its weights and of ROI, and without PoolBytes if Pool is
// set.
func (s Sampler) placeless() Sampler {
	s.Weights, s.ROI = "", ""
	// Pool decides the order alone. An engine computes Pool from PoolBytes, which otherwise has no effect.
	if s.Pool > 0 {
		s.PoolBytes = 0
	}
	return s
}

// placelessFields returns a copy of the fields without the paths of points and shapes and without
// kinds.
func placelessFields(fields []Field) []Field {
	fields = slices.Clone(fields)
	for i := range fields {
		// A kind only states what the column holds, which the fingerprint of the dataset covers.
		fields[i].Kind = ""
		// Nor are paths of scenes: the fingerprint covers which datasets have the field.
		fields[i].Scenes = nil
		if p := fields[i].Points; p != nil {
			q := *p // a copy, because the caller's fields share the pointer
			q.Array = ""
			fields[i].Points = &q
		}
		if v := fields[i].Vector; v != nil {
			q := *v
			q.Path = ""
			fields[i].Vector = &q
		}
	}
	return fields
}
