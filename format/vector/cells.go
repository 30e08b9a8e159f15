package vector

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/column"
	"github.com/chaski-eo/chaski/internal/digest"
)

// maxNames bounds the bytes of the different strings of a column, with nameBytes more for each, and maxName the bytes
// of one: they are classes or paths of images. A million paths of 200 bytes fit.
const (
	maxNames  = 256 << 20
	nameBytes = 64
	maxName   = 4 << 10
)

// Values has the values of one column, one for each shape.
type Values struct {
	// Ints are whole numbers; nil for other columns. Booleans are 0 and 1.
	Ints []int64
	// Floats are numbers; nil for other columns.
	Floats []float64
	// Codes are indices in Names, for strings; nil for other columns.
	Codes []uint32
	Names []string

	null []bool // nil: none
}

// Null reports whether a shape has no value.
func (v *Values) Null(row int) bool { return v.null != nil && v.null[row] }

// Texts returns the values with whole numbers as strings.
func (v *Values) Texts() *Values {
	if v.Ints == nil {
		return v
	}
	out := &Values{Codes: make([]uint32, len(v.Ints)), null: v.null}
	names := stringCodes{v: out, of: map[string]uint32{}}
	for row, number := range v.Ints {
		if !v.Null(row) {
			out.Codes[row], _ = names.code([]byte(strconv.FormatInt(number, 10))) // digits are not too long
		}
	}
	names.sort()
	return out
}

// inPath returns values in place of the name in braces of a path.
func (v *Values) inPath(form string) *Values {
	out := *v.Texts()
	out.Names = slices.Clone(out.Names)
	for i, value := range out.Names {
		out.Names[i] = column.Fill(form, func(string) (string, bool) { return value, true })
	}
	return &out
}

// AllNull reports whether no shape has a value.
func (v *Values) AllNull() bool {
	n := len(v.Ints) + len(v.Floats) + len(v.Codes) // two are nil
	return n == 0 || v.null != nil && !slices.Contains(v.null, false)
}

// hash adds the values to a hash.
func (v *Values) hash(h digest.Digest) {
	for i := range v.Ints {
		h.Number(uint64(v.Ints[i]))
	}
	for i := range v.Floats {
		h.Number(math.Float64bits(v.Floats[i]))
	}
	for i := range v.Codes {
		h.Number(uint64(v.Codes[i]))
	}
	_, _ = fmt.Fprintf(h, "%q", v.Names)
	for i, null := range v.null {
		if null {
			h.Number(uint64(i))
		}
	}
}

// cells collects the values of one column of a text.
type cells struct {
	column     string
	words      bool // values are strings, also if all of them look like numbers
	optional   bool // no value needs to be there
	truths     bool // the words True and False are 1 and 0, as the booleans of JSON are
	n          int
	exists     bool
	names      map[string]bool // of the first feature's properties
	v          Values
	codes      stringCodes
	floats     []float64
	allNumbers bool // all values so far are numbers
	allInts    bool // all numbers so far are whole
	dropped    bool // the codes of words that are numbers were not kept
	kind       string
}

// Kinds of values.
const (
	nullCell   = ""
	numberCell = "number"
	stringCell = "string"
	wordCell   = "word" // of a text that does not say whether its values are numbers or strings
)

// maxWords is how many different numbers a column of words has at most for it to be strings: classes are fewer,
// and areas need no codes.
const maxWords = 1 << 16

func newCells(column string) *cells {
	empty := &cells{column: column, allNumbers: true, allInts: true, names: map[string]bool{}}
	empty.codes = stringCodes{v: &empty.v, of: map[string]uint32{}}
	return empty
}

// add adds the value of a feature.
func (c *cells) add(properties json.RawMessage) error {
	if c.column == "" {
		return nil
	}
	raw, ok, err := member(properties, c.column, func(name string) {
		if c.n == 0 && len(c.names) < maxListed {
			c.names[name] = true
		}
	})
	if err != nil {
		return fault.New(fault.Corrupt, "properties", "%v", err)
	}
	c.exists = c.exists || ok
	return c.addJSON(raw)
}

// maxListed is how many names of properties an error has.
const maxListed = 64

// addJSON adds a value of JSON; one without bytes is missing.
func (c *cells) addJSON(raw json.RawMessage) error {
	switch text := string(raw); {
	case text == "" || text == "null":
		return c.put(nullCell, "")
	case text == "true":
		return c.put(numberCell, "1")
	case text == "false":
		return c.put(numberCell, "0")
	case text[0] == '"':
		var decoded string
		if err := json.Unmarshal(raw, &decoded); err != nil {
			return err
		}
		return c.put(stringCell, decoded)
	case text[0] == '{':
		return fault.New(fault.Unsupported, "property "+c.column,
			"an object: name a member of it, as in %q", c.column+".name")
	case text[0] == '[':
		return c.mixed("list")
	default:
		return c.put(numberCell, text)
	}
}

// addWord adds a value of a text: an empty one is missing.
func (c *cells) addWord(text string) error {
	if text = strings.TrimSpace(text); text == "" {
		return c.put(nullCell, "")
	}
	return c.put(wordCell, text)
}

// mixed returns the error about a value of another kind than those before.
func (c *cells) mixed(kind string) error {
	return fault.New(fault.Unsupported, "property "+c.column, "a %s: all features need numbers, or all strings", kind)
}

// put adds a value.
func (c *cells) put(kind, text string) (err error) {
	pos := c.n
	c.n++
	c.v.null = append(c.v.null, kind == nullCell)
	c.v.Ints, c.floats, c.v.Codes = append(c.v.Ints, 0), append(c.floats, 0), append(c.v.Codes, 0)
	if kind == nullCell {
		return nil
	}
	c.exists = true
	if c.kind = cmp.Or(c.kind, kind); kind != c.kind {
		return c.mixed(kind)
	}
	if kind != stringCell && c.allNumbers {
		c.number(pos, text)
	}
	if kind == wordCell && c.allNumbers && !c.words && (c.dropped || len(c.codes.of) > maxWords) {
		if !c.dropped {
			c.dropped, c.codes.of, c.codes.size, c.v.Names = true, map[string]uint32{}, 0, nil
		}
		return nil
	}
	switch {
	case kind == numberCell && !c.allNumbers:
		err = fault.New(fault.Corrupt, "property "+c.column, "%q is not a number", fault.Short(text))
	case c.dropped:
		err = c.mixed("string after over " + strconv.Itoa(maxWords) + " different numbers")
	case kind != numberCell:
		c.v.Codes[pos], err = c.codes.code([]byte(text))
	}
	return err
}

// number sets the number of a value, if the text is one.
func (c *cells) number(pos int, text string) {
	if is, err := strconv.ParseBool(text); err == nil && c.truths && len(text) > 1 {
		text = map[bool]string{false: "0", true: "1"}[is]
	}
	x, err := strconv.ParseFloat(text, 64)
	if c.allNumbers = err == nil; err != nil {
		return
	}
	c.floats[pos] = x
	if whole, err := strconv.ParseInt(text, 10, 64); err == nil {
		c.v.Ints[pos] = whole
	} else {
		c.allInts = false
	}
}

// values returns the values of all features.
func (c *cells) values() (*Values, error) {
	switch {
	case c.column == "":
		return nil, nil
	case !c.exists && c.n > 0 && !c.optional:
		return nil, fault.New(fault.NotFound, "property "+c.column, "no feature has it; there are %s",
			fault.Near(c.column, slices.Sorted(maps.Keys(c.names)), fault.Itself))
	case c.kind == stringCell || c.kind == wordCell && (c.words || !c.allNumbers):
		c.v.Ints = nil
		c.codes.sort()
		return &c.v, nil
	}
	if c.v.Codes, c.v.Names = nil, nil; !c.allInts {
		c.v.Ints, c.v.Floats = nil, c.floats
	}
	return &c.v, nil
}

// stringCodes numbers the strings of a column.
type stringCodes struct {
	v    *Values
	of   map[string]uint32
	size int // of the strings, with nameBytes for each
}

func (c *stringCodes) code(b []byte) (uint32, error) {
	if code, ok := c.of[string(b)]; ok {
		return code, nil
	}
	if c.size += len(b) + nameBytes; len(b) > maxName || c.size > maxNames {
		return 0, fault.New(fault.Limit, "column",
			"it has different strings of over %d bytes, or one of over %d bytes", maxNames, maxName)
	}
	fresh := uint32(len(c.of))
	c.of[string(b)] = fresh
	c.v.Names = append(c.v.Names, string(b))
	return fresh, nil
}

// sort gives the strings numbers in their order, because the pages come in any order.
func (c *stringCodes) sort() {
	sorted := slices.Sorted(maps.Keys(c.of))
	numbers := make([]uint32, len(sorted))
	for number, name := range sorted {
		numbers[c.of[name]] = uint32(number)
	}
	for i, code := range c.v.Codes {
		if !c.v.Null(i) {
			c.v.Codes[i] = numbers[code]
		}
	}
	c.v.Names = sorted
}

// rename replaces the strings; several may become the same.
func (c *stringCodes) rename(names map[string]string) {
	fresh := stringCodes{v: c.v, of: map[string]uint32{}}
	numbers := make([]uint32, len(c.of))
	for old, code := range c.of {
		name := names[old]
		if _, ok := fresh.of[name]; !ok {
			fresh.of[name] = uint32(len(fresh.of))
		}
		numbers[code] = fresh.of[name]
	}
	for i, code := range c.v.Codes {
		if !c.v.null[i] {
			c.v.Codes[i] = numbers[code]
		}
	}
	c.of = fresh.of
}
