package hdf5

import "bytes"

// Class is a class of datatypes.
type Class uint8

// The classes, by their numbers in files.
const (
	Fixed Class = iota
	Float
	Time
	String
	Bits
	Opaque
	Compound
	Reference
	Enum
	Varying
	Array
	Complex
)

// String returns the name of the class for people.
func (c Class) String() string {
	names := [...]string{"integer", "float", "time", "string", "bitfield", "opaque", "compound", "reference", "enum",
		"variable length", "array", "complex"}
	if int(c) < len(names) {
		return names[c]
	}
	return "unknown"
}

// Datatype is the type of the elements of a dataset or an attribute.
type Datatype struct {
	Class  Class
	Size   int  // bytes of an element
	Big    bool // the order of the bytes of a number
	Signed bool // of integers
	// Plain is true if all bits of a number count, and a float is one of IEEE 754: of 16, 32 or 64 bits.
	Plain bool
	Part  *Part // of other numbers that are read, as a dataset
	// Text is true of strings of any length. Padding says how fixed ones end: 0 and 1 by zeros, 2 by spaces.
	Text    bool
	Padding byte
	// Bool is true if h5py reads the elements as booleans: an enum of FALSE and TRUE in one byte.
	Bool bool
	Base *Datatype // of enums, arrays and variable lengths
}

const datatypePart = "datatype"

// Number returns the type of the numbers that are stored, of an enum its base type; nil if they are not numbers.
func (t *Datatype) Number() *Datatype {
	switch {
	case t.Class == Enum && t.Base.Class == Fixed && t.Base.Plain:
		return t.Base
	case (t.Class == Fixed || t.Class == Float) && t.Plain:
		return t
	}
	return nil
}

// List returns the type of the numbers of lists of any length; nil if the elements are something else.
func (t *Datatype) List() *Datatype {
	if t.Class != Varying || t.Text {
		return nil
	}
	return t.Base.Number()
}

// datatype reads a datatype.
func (w *walk) datatype(b *block, depth int) (*Datatype, error) {
	if depth > maxDepth {
		return nil, b.fail("more than %d datatypes in each other", maxDepth)
	}
	head := b.u8()
	set := b.uint(3)
	t := &Datatype{Class: Class(head & 0x0f), Size: int(b.u32())}
	version := head >> 4
	if b.err != nil {
		return nil, b.err
	}
	if version < 1 || version > 5 {
		return nil, unsupported(b.part, "version %d", version)
	}
	if t.Size < 1 || t.Size > maxBlock {
		return nil, b.fail("elements of %d bytes", t.Size)
	}
	switch t.Class {
	case Fixed, Bits: // h5py, too, reads bitfields as unsigned integers
		t.Big, t.Signed = set&1 != 0, t.Class == Fixed && set&8 != 0
		t.Class = Fixed
		first, precision := b.u16(), b.u16()
		t.integers(first, precision)
	case Float:
		if t.Big = set&1 != 0; set&0x40 == 0 { // else of a VAX
			b.floats(t, int(set>>8&0xff), set>>4&3 == 2)
		}
	case String:
		t.Padding = byte(set & 0x0f)
	case Enum:
		return t, w.enum(b, t, int(set&0xffff), version, depth)
	case Varying:
		t.Text = set&0x0f == 1
		return t, w.baseType(b, t, depth)
	case Array:
		n := int(b.u8())
		if version < 3 {
			b.take(3)
		}
		b.take(4 * n)
		if version < 3 {
			b.take(4 * n)
		}
		return t, w.baseType(b, t, depth)
	}
	return t, b.err
}

// baseType reads the type that another one is made of.
func (w *walk) baseType(b *block, t *Datatype, depth int) (err error) {
	t.Base, err = w.datatype(b, depth+1)
	return err
}

// enum reads the base type of an enum, and whether it is of booleans.
func (w *walk) enum(b *block, t *Datatype, n int, version byte, depth int) error {
	if err := w.baseType(b, t, depth); err != nil {
		return err
	}
	if t.Base.Size != t.Size {
		return b.fail("an enum of %d bytes, of numbers of %d", t.Size, t.Base.Size)
	}
	if n != 2 || t.Size != 1 {
		return nil
	}
	t.Bool = true
	for _, want := range [...]string{"FALSE", "TRUE"} {
		name, err := b.text(version < 3)
		if err != nil {
			return err
		}
		t.Bool = t.Bool && name == want
	}
	t.Bool = t.Bool && bytes.Equal(b.take(n), []byte{0, 1})
	return b.err
}

// text returns a string that ends with a zero. padded says that its size is a multiple of 8.
func (b *block) text(padded bool) (string, error) {
	end := bytes.IndexByte(b.all[b.pos:], 0)
	if end < 0 {
		return "", b.fail("a name without an end")
	}
	n := end + 1
	if padded {
		n = (n + 7) &^ 7
	}
	name := b.take(n)
	return string(name[:min(end, len(name))]), b.err
}
