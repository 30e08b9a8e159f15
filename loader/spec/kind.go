package spec

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/column"
	"github.com/chaski-eo/chaski/internal/magic"
)

// Kinds of fields, the entries of fieldKinds.
const (
	RasterField = "raster"
	NumberField = "number"
	ClassField  = "class" // the numbers of strings or integers; of lists of them which classes are there
	TextField   = "text"  // strings, or JSON of lists of them; of rasters the paths as the dataset has them
	ArrayField  = "array"
)

// FieldKind is what all fields of a kind have in common.
type FieldKind struct {
	name string
	// Opens is what catalog.Open must take a column of strings for. 0 leaves that choice to the column.
	Opens column.Kind
	// Metadata says that fields are metadata columns, which have no members of rasters.
	Metadata bool
	// Paths says that a field of rasters has their paths, and Texts that files of texts hold values of the kind.
	Paths, Texts bool
	// Casts says that numbers become the dtype of the field.
	Casts bool

	dtypes []string               // that fields can have
	fits   func(column.Kind) bool // whether fields can have a column with values of a kind; nil for any column
	// check returns what else does not suit a column with values of kind holds, or ""; nil if all does.
	check func(f *Field, holds column.Kind) string
}

// fieldKinds are the kinds in the order in which they are listed, and at last the one of fields without a kind.
var fieldKinds = []FieldKind{
	{name: RasterField, Opens: column.Raster, dtypes: RasterDTypes, check: (*Field).checkRaster},
	{name: NumberField, Metadata: true, Texts: true, Casts: true, dtypes: numberDTypes,
		fits: func(k column.Kind) bool { return k != column.Raster && k.Elem() != column.Text }},
	{name: TextField, Opens: column.Text, Metadata: true, Paths: true, Texts: true, dtypes: []string{"native"},
		fits: func(k column.Kind) bool { return k.Elem() == column.Text }},
	{name: ClassField, Opens: column.Text, Metadata: true, Texts: true, dtypes: classDTypes, check: (*Field).checkClass,
		fits: func(k column.Kind) bool { return k != column.Raster }},
	{name: ArrayField, Casts: true, dtypes: numberDTypes, check: (*Field).checkArray},
	{dtypes: RasterDTypes, check: (*Field).checkAny},
}

// Dtypes that tensors of numbers and of classes can have.
var (
	numberDTypes = append([]string{"float64", "uint16", "uint32", "uint64", "int8", "int16", "int32"},
		RasterDTypes[:len(RasterDTypes)-1]...)
	classDTypes = []string{"native", "uint8", "int16", "int32", "int64", "float32", "float16", "bfloat16"}
)

// fieldKindNames are the values of Field.Kind.
func fieldKindNames() (names []string) {
	for _, kind := range fieldKinds[:len(fieldKinds)-1] {
		names = append(names, kind.name)
	}
	return names
}

// Traits returns what the kind of the field says of it: nothing if it is unknown, which Validate refuses.
func (f *Field) Traits() (found FieldKind) {
	for _, kind := range fieldKinds {
		if kind.name == f.Kind {
			found = kind
		}
	}
	return found
}

// validateKind checks the kind, and that the dtype and the other members suit it.
func (f *Field) validateKind() error {
	traits := f.Traits()
	if traits.dtypes == nil {
		return wrong("kind", f.Kind, "it must be one of %s", strings.Join(fieldKindNames(), ", "))
	}
	if !slices.Contains(traits.dtypes, f.DType) {
		if f.Kind == TextField {
			return fmt.Errorf("dtype is %q, but kind is %q: strings have no dtype", f.DType, f.Kind)
		}
		return wrong("dtype", f.DType, "it must be one of %s", strings.Join(traits.dtypes, ", "))
	}
	if err := f.validateClasses(); err != nil || !traits.Metadata {
		return err
	}
	if f.Split != "" && f.Kind != ClassField && f.Kind != TextField {
		return fmt.Errorf("split is %q and kind is %q: strings are of kind %q or %q", f.Split, f.Kind, ClassField,
			TextField)
	}
	if class := magic.Named(f.Pattern).Class; f.Pattern != "" && !traits.Paths && (!traits.Texts || class.Pixels() ||
		class == magic.Store || strings.Contains(f.Pattern, "::")) {
		return f.HoldsRasters()
	}
	if m := f.rasterMember(); m != "" {
		return fmt.Errorf("kind is %q and %s is given: that is for rasters", f.Kind, m)
	}
	return nil
}

// HoldsRasters returns the error about a field whose kind does not suit the files of its pattern.
func (f *Field) HoldsRasters() error {
	return fmt.Errorf("kind is %q and pattern is %q: files hold rasters", f.Kind, f.Pattern)
}

// CheckKind checks that a column with values of kind holds suits the kind, the dtype and the other
// members of the field. The error is a fault of kind unsupported and names the column.
func (f *Field) CheckKind(holds column.Kind) error {
	kind, problem := f.Traits(), ""
	switch {
	case kind.fits != nil && !kind.fits(holds):
		problem = fmt.Sprintf("kind is %q", f.Kind)
	case holds == column.Raster && !slices.Contains(RasterDTypes, f.DType):
		problem = fmt.Sprintf("dtype is %q, and rasters have %s", f.DType, strings.Join(RasterDTypes, ", "))
	case kind.check != nil:
		problem = kind.check(f, holds)
	}
	if problem == "" {
		return nil
	}
	return fault.New(fault.Unsupported, "kind", "%s, and column %q holds %ss", problem, cmp.Or(f.Column, f.Name), holds)
}

// sayRaster is the hint of errors about columns of strings that are paths of rasters.
const sayRaster = `kind "raster" says that texts are paths, whatever they end in`

// sayLists is the hint of errors about lists of paths.
const sayLists = "for paths give each a row of its own, as DataFrame.explode does, and Rows(time=...) makes series " +
	"of rows"

func (f *Field) checkRaster(holds column.Kind) string {
	switch m := f.RasterOnly(); {
	case holds == column.Raster:
		return ""
	case holds == column.Text|column.List:
		return "a sample has one path of a raster, not several (" + sayLists + ")"
	case m != "":
		return m + " is given, which is for rasters"
	}
	return "the field is a raster (by its kind, or as it has bands, layout, sizes, normalize, clip, fill, pad, " +
		"validity, resample or physical)"
}

func (f *Field) checkClass(holds column.Kind) string {
	switch limit := ClassLimit(f.DType, holds); {
	case len(f.Classes) > limit:
		return fmt.Sprintf("classes has %d strings, and dtype %q has numbers for %d", len(f.Classes), f.DType, limit)
	case !holds.IsList() && strings.Contains(f.DType, "float"):
		return fmt.Sprintf("dtype is %q, which is for the classes of lists", f.DType)
	}
	return ""
}

func (f *Field) checkArray(holds column.Kind) string {
	if holds.Elem() != column.Text {
		return ""
	}
	return fmt.Sprintf("dtype is %q, which is for rasters and numbers (%s)", f.DType, sayRaster)
}

// checkAny checks a field without a kind.
func (f *Field) checkAny(holds column.Kind) string {
	switch m := f.RasterOnly(); {
	case holds == column.Text|column.List:
		return fmt.Sprintf("the field has neither kind %q, which gives each list as JSON, nor classes or kind %q, "+
			"which make labels numbers (%s)", TextField, ClassField, sayLists)
	case holds != column.Raster && m != "":
		return fmt.Sprintf("%s is given, which is for rasters (%s)", m, sayRaster)
	}
	return ""
}

// validateClasses checks the classes of a field.
func (f *Field) validateClasses() error {
	switch {
	case f.Classes == nil:
		return nil
	case f.Kind != ClassField:
		return fmt.Errorf("classes are given and kind is %q: they are for kind %q", f.Kind, ClassField)
	case len(f.Classes) == 0:
		return fmt.Errorf("classes is empty: without classes they are the strings of the column")
	}
	return CheckClasses(f.Classes)
}

// MaxClasses bounds the classes of a field: the land cover legends in use have some hundred.
const MaxClasses = 1 << 16

// ClassLimit returns how many classes a field of kind "class" may have, of a column with values of a kind. Its dtype
// numbers them from 0, but the classes of lists are places of a tensor.
func ClassLimit(dtype string, holds column.Kind) int {
	switch {
	case holds.IsList():
	case dtype == "uint8":
		return 1 << 8
	case dtype == "int16":
		return 1 << 15
	}
	return MaxClasses
}

// CheckClasses checks that classes are different and not empty, and how many there are.
func CheckClasses(classes []string) error {
	if len(classes) > MaxClasses {
		return fmt.Errorf("classes has %d strings: it must have at most %d", len(classes), MaxClasses)
	}
	if slices.Contains(classes, "") {
		return fmt.Errorf("classes has an empty string: samples without a class are bad")
	}
	if class, twice := repeated(classes); twice {
		return fmt.Errorf("classes has %q twice", class)
	}
	return nil
}
