package taco3

import (
	"regexp"
	"strconv"
	"strings"

	"github.com/chaski-eo/chaski/format/tables"
)

// plainTypes are the types without parameters that taco:metadata may name, by the names that pyarrow gives them.
var plainTypes = map[string]string{"date32": "date32[day]", "date64": "date64[ms]", "float16": "halffloat"}

func init() {
	for name := range strings.FieldsSeq("null bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float double " +
		"string large_string string_view binary large_binary binary_view halffloat date32[day] date64[ms] " +
		"month_day_nano_interval") {
		plainTypes[name] = name
	}
	for _, kind := range []string{"timestamp", "duration", "time32", "time64"} {
		for _, unit := range []string{"s", "ms", "us", "ns"} {
			plainTypes[kind+"["+unit+"]"] = kind + "[" + unit + "]"
		}
	}
}

// maxTypeDepth bounds types inside each other, as the reader of Parquet does.
const maxTypeDepth = 64

// Types with parameters: decimal128(10, 2), timestamp[us, tz=UTC], fixed_size_binary[16].
var (
	decimalPattern = regexp.MustCompile(`^(decimal\w*)\(([-+]?\d+), *([-+]?\d+)\)$`)
	zonedPattern   = regexp.MustCompile(`^timestamp\[(s|ms|us|ns), *([^\[\]]*)\]$`)
	fixedPattern   = regexp.MustCompile(`^fixed_size_binary\[[-+]?\d+\]$`)
)

// nestedTypes are the types with others in them, by how many there are; of a struct any number.
var nestedTypes = map[string]int{"list": 1, "large_list": 1, "list_view": 1, "large_list_view": 1, "map": 2,
	"fixed_size_list": 2, "struct": -1}

// typeName returns a type of taco:metadata with the names of pyarrow and without "?", which marks what may be null.
// It returns "" for a text that is not a type.
func typeName(text string) string { return typeInside(text, 0) }

func typeInside(text string, depth int) string {
	text = strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(text), "?"))
	word, inner, nested := strings.Cut(text, "<")
	if !nested {
		text = decimalPattern.ReplaceAllString(text, "$1($2, $3)")
		text = zonedPattern.ReplaceAllString(text, "timestamp[$1, tz=$2]")
		if decimalPattern.MatchString(text) || zonedPattern.MatchString(text) || fixedPattern.MatchString(text) {
			return text
		}
		return plainTypes[text]
	}
	inner, closed := strings.CutSuffix(inner, ">")
	parts := splitTypes(inner)
	want := nestedTypes[word]
	wrongCount := want > 0 && len(parts) != want
	if !closed || depth == maxTypeDepth || want == 0 || wrongCount {
		return ""
	}
	for i, part := range parts {
		field := ""
		if word == "struct" {
			name, typ, named := strings.Cut(part, ":")
			if !named {
				return ""
			}
			field, part = strings.TrimSpace(name)+": ", typ
		}
		if _, err := strconv.Atoi(part); err == nil && word == "fixed_size_list" && i == 1 {
			continue
		}
		if part = typeInside(part, depth+1); part == "" || word == "fixed_size_list" && i == 1 {
			return ""
		}
		parts[i] = field + part
	}
	return word + "<" + strings.Join(parts, ", ") + ">"
}

// typeText returns a type in the words of typeName. inner writes a type that is in another one.
func typeText(t tables.Type, inner func(t tables.Type) string) string {
	form := t.Stored()
	switch {
	case t.Kind == tables.List && form.Store == tables.Map:
		key, value := t.Elem.Fields[0].Type, t.Elem.Fields[1].Type
		return "map<" + strings.TrimSuffix(inner(key), "?") + ", " + inner(value) + ">"
	case t.Kind == tables.List && form.Store == tables.FixedList:
		return "fixed_size_list<" + inner(*t.Elem) + ", " + strconv.Itoa(int(form.Size)) + ">"
	case t.Kind == tables.List:
		word, _, _ := strings.Cut(t.ArrowName(), "<")
		return word + "<" + inner(*t.Elem) + ">"
	case t.Kind == tables.Struct:
		fields := make([]string, len(t.Fields))
		for i, c := range t.Fields {
			fields[i] = c.Name + ": " + inner(c.Type)
		}
		return "struct<" + strings.Join(fields, ", ") + ">"
	}
	return t.ArrowName()
}

// storedName returns the type of a stored column in the words of typeName.
func storedName(t tables.Type) string { return typeText(t, storedName) }

// DeclaredType returns the type of a column as taco:metadata has it: the names of pyarrow but for dates, float16 and
// time zones, and inside brackets "?" behind what may be null.
func DeclaredType(t tables.Type) string {
	switch name := typeText(t, func(t tables.Type) string {
		if t.Stored().Required {
			return DeclaredType(t)
		}
		return DeclaredType(t) + "?"
	}); {
	case t.Kind == tables.List || t.Kind == tables.Struct:
		return name
	case name == "date32[day]":
		return "date32"
	case name == "halffloat":
		return "float16"
	default:
		return strings.Replace(name, ", tz=", ", ", 1)
	}
}
