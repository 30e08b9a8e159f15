package tables

import (
	"strings"
	"testing"
)

// TestMapStrings: strings are changed at all levels, and types, forms and nulls stay.
func TestMapStrings(t *testing.T) {
	texts := NewStrings([]string{"a", "", "b"}, []bool{false, true, false})
	texts.typ = texts.typ.With(func(f *Form) { f.Store, f.Size = Coded, 32 })
	list := NewList(texts, []uint32{0, 2, 3}, nil)
	got := list.MapStrings(strings.ToUpper)
	child, _ := got.Offsets()
	same := got.Type().ArrowName() == list.Type().ArrowName() && child.Type().Stored() == texts.Type().Stored()
	if !child.Null(1) || child.Str(0) != "A" || child.Str(2) != "B" || !same || texts.Str(0) != "a" {
		t.Errorf("%v of %v: %q %q", got.Type(), child.Type(), child.Str(0), child.Str(2))
	}
}
