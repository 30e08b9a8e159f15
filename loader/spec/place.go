package spec

import (
	"slices"
)

// Placeless returns the spec without what changes no byte of a batch.
func (s Spec) Placeless() Spec {
	s.Source, s.Container, s.BadLimit, s.Missing = "", Container{}, nil, ""
	s.Fields = placelessFields(s.Fields)
	s.Sampler = s.Sampler.placeless()
	var strip func(list []Source) []Source
	strip = func(list []Source) []Source {
		list = slices.Clone(list)
		for i := range list {
			c := &list[i]
			c.Name, c.Source, c.Container, c.Missing = "", "", Container{}, ""
			c.Fields = placelessFields(c.Fields)
			if c.Sampler != nil {
				f := c.Sampler.placeless()
				c.Sampler = &f
			}
			c.Sources = strip(c.Sources)
		}
		return list
	}
	s.Sources = strip(s.Sources)
	return s
}

// placeless returns the sampler without the place of its weights, and the quota that its pool was made of.
func (s Sampler) placeless() Sampler {
	s.Weights = ""
	if s.Pool > 0 {
		s.PoolBytes = 0
	}
	return s
}

// placelessFields returns fields without where the arrays of points lie, and without what columns should hold.
func placelessFields(fields []Field) []Field {
	fields = slices.Clone(fields)
	for i := range fields {
		fields[i].Kind = ""
		if p := fields[i].Points; p != nil {
			q := *p
			q.Array = ""
			fields[i].Points = &q
		}
	}
	return fields
}
