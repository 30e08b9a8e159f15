package ifd

import (
	"context"

	"github.com/chaski-eo/chaski/fault"
)

// Tags reads tags of one directory and keeps the first error. After that its methods return zeros and read
// nothing.
type Tags struct {
	File *File
	Dir  *Directory
	Err  error

	ctx context.Context
}

// Tags returns a reader of the tags of d, which is one of the file's directories.
func (f *File) Tags(ctx context.Context, d *Directory) Tags { return Tags{File: f, Dir: d, ctx: ctx} }

// Fail sets Err to an error about a tag, at the offset of its values, unless Err is set.
func (t *Tags) Fail(kind fault.Kind, tag uint16, format string, args ...any) {
	if t.Err != nil {
		return
	}
	off := int64(fault.NoOffset)
	if e := t.Dir.Find(tag); e != nil {
		off = e.Off
	}
	t.Err = fault.At(kind, t.Dir.Part(tag), off, format, args...)
}

// Prefetch is File.Prefetch: it reads the values of tags that are needed next.
func (t *Tags) Prefetch(tags ...uint16) {
	if t.Err == nil {
		t.Err = t.File.Prefetch(t.ctx, t.Dir, tags...)
	}
}

// Value returns the values of a tag, the zero Value if there is no such tag.
func (t *Tags) Value(tag uint16) Value {
	entry := t.Dir.Find(tag)
	if t.Err != nil || entry == nil {
		return Value{}
	}
	n, err := t.File.valueBytes(t.Dir, entry)
	var data []byte
	if err == nil {
		data, err = t.File.Bytes(t.ctx, t.Dir.Part(tag), entry.Off, n)
	}
	if t.Err = err; err != nil {
		return Value{}
	}
	return Value{Type: entry.Type, Off: entry.Off, b: data, order: t.File.order}
}

// Uints returns the values of a tag that must be integers (see Value.Uint), or the zero Value without the
// tag.
func (t *Tags) Uints(tag uint16) Value {
	value := t.Value(tag)
	if value.Type != 0 && (!value.IsInt() || value.Len() == 0) {
		t.Err = fault.At(fault.Corrupt, t.Dir.Part(tag), value.Off, "%d values of type %d", value.Len(), value.Type)
		return Value{}
	}
	return value
}

// Uint returns the first value of a tag of unsigned integers, or absent if there is no such tag.
func (t *Tags) Uint(tag uint16, absent uint64) uint64 {
	value := t.Uints(tag)
	switch {
	case t.Err != nil:
		return 0
	case value.Type == 0:
		return absent
	}
	return value.Uint(0)
}

// Between is Uint for a value, or absent, that must lie in lo to hi. Otherwise the file is Corrupt.
func (t *Tags) Between(tag uint16, absent, lo, hi uint64) uint64 {
	v := t.Uint(tag, absent)
	switch {
	case t.Err != nil:
		return 0
	case lo <= v && v <= hi:
		return v
	case t.Dir.Find(tag) == nil:
		t.Fail(fault.Corrupt, tag, "missing")
	default:
		t.Fail(fault.Corrupt, tag, "value %d", v)
	}
	return 0
}

// Array reads a tag that has a value for each of the chunks at every position. positions is below 2^62,
// chunks below 2^16. The count is checked before anything is read.
func (t *Tags) Array(tag uint16, positions, chunks uint64) Value {
	if t.Err != nil {
		return Value{}
	}
	entry := t.Dir.Find(tag)
	switch {
	case entry == nil:
		t.Fail(fault.Corrupt, tag, "missing")
	case entry.Count%chunks != 0 || entry.Count/chunks != positions:
		t.Fail(fault.Corrupt, tag, "%d entries for %d positions with %d chunks each", entry.Count, positions, chunks)
	}
	return t.Uints(tag)
}
