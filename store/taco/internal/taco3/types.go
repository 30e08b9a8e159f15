package taco3

import (
	"strconv"
	"strings"

	"github.com/chaski-eo/chaski/tables"
)

// plainTypes are the types without parameters that taco:metadata may name, by the names that pyarrow gives them.
var plainTypes = map[string]string{"date32": "date32[day]", "date64": "date64[ms]", "float16": "halffloat"}

func init() {
	for _, name := range strings.Fields("null bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float double " +
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

// typeName returns a type of taco:metadata with the names of pyarrow and without "?", which marks what may be null.
// It returns "" for a text that is not a type.
func typeName(text string) string {
	p := typeParser{text}
	name := p.parse(0)
	if p.rest != "" {
		return ""
	}
	return name
}

// typeParser parses the name of a type.
type typeParser struct{ rest string }

// cut passes over a text and reports whether it was there.
func (p *typeParser) cut(text string) bool {
	rest, ok := strings.CutPrefix(p.rest, text)
	if ok {
		p.rest = strings.TrimLeft(rest, " ")
	}
	return ok
}

// until returns what stands in front of one of some letters.
func (p *typeParser) until(letters string) string {
	i := strings.IndexAny(p.rest, letters)
	if i < 0 {
		i = len(p.rest)
	}
	word := p.rest[:i]
	p.rest = p.rest[i:]
	return strings.TrimSpace(word)
}

// maxTypeDepth bounds types inside each other, as the reader of Parquet does.
const maxTypeDepth = 64

// parse returns the name of the type that follows, or "".
func (p *typeParser) parse(depth int) string {
	if depth > maxTypeDepth {
		return ""
	}
	name := p.one(depth)
	p.cut("?")
	return name
}

func (p *typeParser) one(depth int) string {
	word := p.until("<>[]()?,:")
	switch {
	case p.cut("<"):
		return p.nested(word, depth)
	case p.cut("["):
		return p.parametrised(word, p.until("]"), p.cut("]"))
	case p.cut("("):
		digits := p.until(")")
		precision, scale, ok := strings.Cut(digits, ",")
		_, err1 := strconv.Atoi(precision)
		_, err2 := strconv.Atoi(strings.TrimSpace(scale))
		if !p.cut(")") || !ok || err1 != nil || err2 != nil || !strings.HasPrefix(word, "decimal") {
			return ""
		}
		return word + "(" + precision + ", " + strings.TrimSpace(scale) + ")"
	}
	return plainTypes[word]
}

// parametrised returns the name of a type with a parameter in brackets.
func (p *typeParser) parametrised(word, parameter string, closed bool) string {
	unit, zone, zoned := strings.Cut(parameter, ",")
	switch {
	case !closed:
		return ""
	case word == "timestamp" && zoned && plainTypes["timestamp["+unit+"]"] != "":
		return "timestamp[" + unit + ", tz=" + strings.TrimSpace(zone) + "]"
	case word == "fixed_size_binary":
		if _, err := strconv.Atoi(parameter); err == nil {
			return "fixed_size_binary[" + parameter + "]"
		}
		return ""
	}
	return plainTypes[word+"["+parameter+"]"]
}

// nested returns the name of a type with other types.
func (p *typeParser) nested(word string, depth int) string {
	var parts []string
	for !p.cut(">") {
		part := ""
		if word == "struct" {
			part = p.until(":") + ": "
			if !p.cut(":") {
				return ""
			}
		}
		if word == "fixed_size_list" && len(parts) == 1 {
			part = p.until(">")
			if _, err := strconv.Atoi(part); err != nil {
				return ""
			}
		} else if t := p.parse(depth + 1); t != "" {
			part += t
		} else {
			return ""
		}
		parts = append(parts, part)
		if !p.cut(",") && !strings.HasPrefix(p.rest, ">") {
			return ""
		}
	}
	want := map[string]int{"list": 1, "large_list": 1, "list_view": 1, "large_list_view": 1, "map": 2,
		"fixed_size_list": 2, "struct": len(parts)}[word]
	if want == 0 || len(parts) != want {
		return ""
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
