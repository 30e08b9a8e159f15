package tables

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
)

// Store names a type of Arrow that holds the same values as a Kind, in another way.
type Store uint8

// Types of Arrow beside the one that each Kind has by default.
const (
	Default   Store = iota
	Map             // List of structs of a key and a value
	FixedList       // List; Form.Size is the number of values
	LargeList       // List, and so are the next two
	ListView
	LargeListView
	LargeText // String or Binary, and so is the next
	TextView
	FixedBytes // Binary; Form.Size is the number of bytes
	Coded      // String or Binary: a dictionary
	Duration   // Int64, in Form.Unit
	Decimals   // Decimal, of Form.Size bits; Binary, if it has over 38 digits
	Seconds    // Time and Timestamp; Parquet has milliseconds
	Millis     // Date; Parquet has days
)

// Form says how Arrow and Parquet store the values of a type where its Kind leaves a choice. It changes nothing in the
// values that a Vector hands out, but for durations, which are in its unit.
type Form struct {
	Store Store
	// Size is the number of values of FixedList, of bytes of FixedBytes and of Decimals in Binary, and of bits of other
	// Decimals and of the codes of Coded.
	Size int32
	// Unit is 3, for milliseconds, of Time and Timestamp. Of Duration it is the digits after the second: 0, 3, 6 or 9.
	Unit             uint8
	Precision, Scale int32 // of Decimals in Binary
	Ordered          bool  // of Coded, and so is Unsigned
	Unsigned         bool
	Zone             string
	// Extension is the name of Arrow's extension type, and Metadata its parameters. UUID and JSON have their names
	// without Arrow's metadata, too, because Parquet knows them.
	Extension, Metadata string
	// Required says to writers of Parquet that no value is null, and Note is the description of a column in Arrow's
	// schema. Readers set neither.
	Required bool
	Note     string
}

// Names of Arrow's canonical extension types that Parquet has as well.
const (
	ExtensionUUID = "arrow.uuid"
	ExtensionJSON = "arrow.json"
)

// Stored returns the form of a type; the zero value stands for the default.
func (t Type) Stored() Form {
	if t.Form == nil {
		return Form{}
	}
	return *t.Form
}

// formed returns the type with another form.
func (t Type) formed(f Form) Type {
	t.Form = &f
	if f == (Form{}) {
		t.Form = nil
	}
	return t
}

// With returns the type with a changed form.
func (t Type) With(change func(f *Form)) Type {
	form := t.Stored()
	change(&form)
	return t.formed(form)
}

// Plain returns the type in its default form at all levels. Durations stay: their values depend on the unit.
func (t Type) Plain() Type {
	return t.Each(func(t Type) Type {
		if f := t.Stored(); f.Store == Duration {
			return t.formed(Form{Store: Duration, Unit: f.Unit})
		}
		return t.formed(Form{})
	})
}

// SQL returns the type that a query sees: in its default form at all levels, with durations as integers, and
// float16 as float32. Of times, only timestamps that are in no list or struct count nanoseconds.
func (t Type) SQL() Type {
	nano := t.Nano && t.Kind == Timestamp
	t = t.Each(func(t Type) Type {
		t.Nano = false
		if t.Kind == Float64 {
			t.Bits = max(t.Bits, 32)
		}
		return t.formed(Form{})
	})
	t.Nano = nano
	return t
}

// Each returns the type with change applied at all levels.
func (t Type) Each(change func(Type) Type) Type {
	t = change(t)
	if t.Elem != nil {
		elem := t.Elem.Each(change)
		t.Elem = &elem
	}
	t.Fields = slices.Clone(t.Fields)
	for i := range t.Fields {
		t.Fields[i].Type = t.Fields[i].Type.Each(change)
	}
	return t
}

// Any reports whether is reports true of the type, or of one in it.
func (t Type) Any(is func(Type) bool) bool {
	return is(t) || t.Elem != nil && t.Elem.Any(is) ||
		slices.ContainsFunc(t.Fields, func(c Column) bool { return c.Type.Any(is) })
}

// SameForms reports whether two types have one form at all levels that both have.
func SameForms(t, u Type) bool {
	if t.Stored() != u.Stored() {
		return false
	}
	for i := range min(len(t.Fields), len(u.Fields)) {
		if !SameForms(t.Fields[i].Type, u.Fields[i].Type) {
			return false
		}
	}
	return t.Elem == nil || u.Elem == nil || SameForms(*t.Elem, *u.Elem)
}

// sameDuration reports whether both types are durations of one unit, or neither is one.
func sameDuration(t, u Type) bool {
	first, second := t.Stored(), u.Stored()
	if first.Store != Duration || second.Store != Duration {
		return first.Store != Duration && second.Store != Duration
	}
	return first.Unit == second.Unit
}

// unitNames are the names of units by the digits after the second.
var unitNames = map[uint8]string{0: "s", 3: "ms", 6: "us", 9: "ns"}

// ArrowName returns the name of the type as pyarrow writes it.
func (t Type) ArrowName() string {
	form := t.Stored()
	large := ""
	if form.Store == LargeText || form.Store == LargeList || form.Store == LargeListView {
		large = "large_"
	}
	switch t.Kind {
	case Float64:
		if name := (map[uint8]string{16: "halffloat", 32: "float"})[t.Bits]; name != "" {
			return name
		}
		return "double"
	case String, Binary:
		return t.textName(large)
	case Int64, Uint64:
		if form.Store == Duration {
			return "duration[" + unitNames[form.Unit] + "]"
		}
		name := "int"
		if t.Kind == Uint64 {
			name = "uint"
		}
		return name + strconv.Itoa(int(t.Bits))
	case Timestamp:
		unit := t.unitName()
		if t.UTC && form.Zone != "" {
			unit += ", tz=" + form.Zone
		} else if t.UTC {
			unit += ", tz=UTC"
		}
		return "timestamp[" + unit + "]"
	case Date:
		return "date32[day]"
	case Time:
		if form.Unit == 3 {
			return "time32[ms]"
		}
		return "time64[" + t.unitName() + "]"
	case Decimal:
		return decimalName(form.Size, int(t.Precision), int(t.Scale))
	case List:
		return t.listName(large)
	case Struct:
		return "struct<" + fieldNames(t.Fields, Type.ArrowName) + ">"
	}
	return t.Kind.String() // null, bool
}

// unitName returns the unit of a time or timestamp.
func (t Type) unitName() string {
	if t.Nano {
		return "ns"
	}
	if t.Stored().Unit == 3 {
		return "ms"
	}
	return "us"
}

func decimalName(bits int32, precision, scale int) string {
	bits = cmp.Or(bits, 128)
	return "decimal" + strconv.Itoa(int(bits)) + "(" + strconv.Itoa(precision) + ", " + strconv.Itoa(scale) + ")"
}

// textName returns the name of a type of kind String or Binary.
func (t Type) textName(large string) string {
	form, name := t.Stored(), "string"
	if t.Kind == Binary {
		name = "binary"
	}
	switch form.Store {
	case FixedBytes:
		return "fixed_size_binary[" + strconv.Itoa(int(form.Size)) + "]"
	case Decimals:
		return decimalName(256, int(form.Precision), int(form.Scale))
	case Coded:
		codes := Type{Kind: Int64, Bits: uint8(form.Size)}
		if form.Unsigned {
			codes.Kind = Uint64
		}
		ordered := "0"
		if form.Ordered {
			ordered = "1"
		}
		return "dictionary<values=" + name + ", indices=" + codes.ArrowName() + ", ordered=" + ordered + ">"
	case TextView:
		return name + "_view"
	}
	return large + name
}

// listName returns the name of a type of kind List.
func (t Type) listName(large string) string {
	form := t.Stored()
	elem := "<element: " + t.Elem.ArrowName() + ">"
	switch form.Store {
	case Map:
		return "map<" + t.Elem.Fields[0].Type.ArrowName() + ", " + t.Elem.Fields[1].Type.ArrowName() + ">"
	case FixedList:
		return "fixed_size_list" + elem + "[" + strconv.Itoa(int(form.Size)) + "]"
	case ListView, LargeListView:
		return large + "list_view" + elem
	}
	return large + "list" + elem
}

func fieldNames(fields []Column, typeName func(Type) string) string {
	names := make([]string, len(fields))
	for i, column := range fields {
		names[i] = column.Name + ": " + typeName(column.Type)
	}
	return strings.Join(names, ", ")
}

// As returns the same values in another form.
func (v *Vector) As(f Form) *Vector {
	out := *v
	out.typ = v.typ.formed(f)
	return &out
}

// retype gives a vector and its children the forms of a type that has the same kinds.
func (v *Vector) retype(t Type) {
	v.typ = t
	switch t.Kind {
	case List:
		v.children[0].retype(*t.Elem)
	case Struct:
		for i, c := range v.children {
			c.retype(t.Fields[i].Type)
		}
	}
}
