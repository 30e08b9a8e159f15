package tiledb

import (
	"github.com/chaski-eo/chaski/store/tiledb/filter"
)

// filterElem returns the Elem of a datatype in the configuration of a filter.
func filterElem(number uint8) (filter.Elem, bool) {
	typ := Datatype(number)
	if typ == Any || !typ.Valid() {
		return filter.Elem{}, typ.Valid()
	}
	return typ.elem(1), true
}

// maxFill limits the fill value of an attribute, in bytes.
const maxFill = 1 << 20

// readLater reads the fields of an attribute that came after format 3.
func (a *Attr) readLater(c *byteCursor) {
	if c.x.fill {
		start := c.off
		size := c.u64("size of the fill value")
		cell := a.Var() || size == uint64(a.CellSize())
		if c.bad == nil && (size > maxFill || !cell || size%uint64(a.Type.Size()) != 0) {
			c.fail(start, "a fill value of %d bytes for attribute %q", size, a.Name)
		}
		a.Fill = append([]byte{}, c.take(size, "fill value")...)
	}
	if c.x.nullable {
		a.Nullable = c.flag("whether an attribute is nullable")
		a.FillValid = c.u8("validity of the fill value") != 0
	}
	if c.x.order {
		start := c.off
		if o := c.u8("order of an attribute"); o > 2 {
			c.fail(start, "order %d of attribute %q", o, a.Name)
		}
	}
	if c.x.enums {
		n := c.u32("length of the name of an enumeration")
		a.Enum = string(c.take(uint64(n), "name of an enumeration"))
	}
}

// readLater reads the parts of a schema that came after format 3 and follow the attributes.
func (s *Schema) readLater(c *byteCursor) {
	if c.x.labels {
		for n := c.u32("number of labels"); n > 0 && c.bad == nil; n-- {
			s.readLabel(c)
		}
	}
	if c.x.enums {
		s.enums = map[string]string{}
		for n := c.u32("number of enumerations"); n > 0 && c.bad == nil; n-- {
			name := string(c.take(uint64(c.u32("length of a name")), "name of an enumeration"))
			s.enums[name] = string(c.take(uint64(c.u32("length of a name")), "file of an enumeration"))
		}
		for i := range s.Attrs {
			if e := s.Attrs[i].Enum; e != "" && c.bad == nil && s.enums[e] == "" {
				c.fail(c.off, "attribute %q has the enumeration %q, which is not listed", s.Attrs[i].Name, e)
			}
		}
	}
	if c.x.current {
		s.readCurrent(c)
	}
}

// readLabel passes over the label of a dimension, but for its name.
func (s *Schema) readLabel(c *byteCursor) {
	c.u32("dimension of a label")
	c.u8("order of a label")
	s.Labels = append(s.Labels, c.text("name of a label"))
	c.u8("whether the place of a label is relative")
	c.text("place of a label")
	c.take(uint64(c.u32("length of a name")), "attribute of a label")
	c.u8("type of a label")
	c.u32("values of a label")
	size := c.u64("domain size of a label")
	c.u64("size of the lower end of a label")
	c.take(size, "domain of a label")
	c.u8("whether a label is external")
}

// readCurrent reads the part of the domain that is in use.
func (s *Schema) readCurrent(c *byteCursor) {
	start := c.off
	// The specification says 1, the library writes 0.
	if v := c.u32("version of the current domain"); c.bad == nil && v > 1 {
		c.fail(start, "version %d of the current domain", v)
	}
	if empty := c.flag("whether there is no current domain"); empty || c.bad != nil {
		return
	}
	start = c.off
	if kind := c.u8("type of the current domain"); kind != 0 {
		c.fail(start, "type %d of the current domain", kind)
	}
	start = c.off
	box := c.box(s.types(), "current domain")
	if c.bad != nil {
		return
	}
	for d := range box {
		if s.Type(d) == StringASCII && box[d] == (Interval{}) {
			box[d] = s.Dims[d].Domain // two strings without content stand for all
		}
	}
	if !s.Domain().covers(box) {
		c.fail(start, "the current domain is outside of the domain")
		return
	}
	s.Current = box
}
