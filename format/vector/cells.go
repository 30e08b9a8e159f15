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
	"github.com/chaski-eo/chaski/format/tables"
	"github.com/chaski-eo/chaski/internal/digest"
)

// maxNames bounds the bytes of the different strings of a column, with nameBytes more for each, and maxName the bytes
// of one: they are classes or paths of images. A million paths of 200 bytes fit.
const (
	maxNames  = 256 << 20
	nameBytes = 64
	maxName   = 4 << 10
)

// Texts returns the values of shapes with whole numbers as strings.
func Texts(values *tables.Vector) *tables.Vector {
	if values.Kind() != tables.Int64 {
		return values
	}
	names := stringCodes{rows: make([]uint32, values.Len())}
	var text []byte
	for row, number := range values.Ints() {
		if !values.Null(row) {
			text = strconv.AppendInt(text[:0], number, 10)
			names.rows[row], _ = names.code(text) // digits are not too long
		}
	}
	return names.vector(values.Nulls())
}

// hashValues adds the values of shapes to a hash.
func hashValues(h digest.Digest, values *tables.Vector) {
	for _, x := range values.Ints() {
		h.Number(uint64(x))
	}
	for _, x := range values.Floats() {
		h.Number(math.Float64bits(x))
	}
	codes, names := values.Distinct()
	hashStrings(h, codes, names, values.Nulls())
}

// hashStrings adds names[code] for each code, but for nulls, to a hash.
func hashStrings(h digest.Digest, codes []uint32, names []string, nulls []bool) {
	for i, code := range codes {
		if nulls != nil && nulls[i] {
			code = 0
		}
		h.Number(uint64(code))
	}
	_, _ = fmt.Fprintf(h, "%q", names)
	for i, null := range nulls {
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
	null       []bool
	ints       []int64
	floats     []float64
	codes      stringCodes
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
	return &cells{column: column, allNumbers: true, allInts: true, names: map[string]bool{}}
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
	c.null = append(c.null, kind == nullCell)
	c.ints, c.floats, c.codes.rows = append(c.ints, 0), append(c.floats, 0), append(c.codes.rows, 0)
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
			c.dropped, c.codes.of, c.codes.size = true, nil, 0
		}
		return nil
	}
	switch {
	case kind == numberCell && !c.allNumbers:
		err = fault.New(fault.Corrupt, "property "+c.column, "%q is not a number", fault.Short(text))
	case c.dropped:
		err = c.mixed("string after over " + strconv.Itoa(maxWords) + " different numbers")
	case kind != numberCell:
		c.codes.rows[pos], err = c.codes.code([]byte(text))
	}
	return err
}

// number sets the number of a value, if the text is one.
func (c *cells) number(pos int, text string) {
	if c.truths && len(text) > 1 {
		if is, err := strconv.ParseBool(text); err == nil {
			text = map[bool]string{false: "0", true: "1"}[is]
		}
	}
	x, ok := decimal(text)
	if !ok {
		var err error
		x, err = strconv.ParseFloat(text, 64)
		ok = err == nil
	}
	if c.allNumbers = ok; !ok {
		return
	}
	c.floats[pos] = x
	if whole, err := strconv.ParseInt(text, 10, 64); err == nil {
		c.ints[pos] = whole
	} else {
		c.allInts = false
	}
}

// values returns the values of all features.
func (c *cells) values() (*tables.Vector, error) {
	switch {
	case c.column == "":
		return nil, nil
	case !c.exists && c.n > 0 && !c.optional:
		return nil, fault.New(fault.NotFound, "property "+c.column, "no feature has it; there are %s",
			fault.Near(c.column, slices.Sorted(maps.Keys(c.names)), fault.Itself))
	case c.kind == stringCell || c.kind == wordCell && (c.words || !c.allNumbers):
		return c.codes.vector(c.null), nil
	case c.allInts:
		return tables.NewInts(tables.Ints, c.ints, c.null), nil
	}
	return tables.NewFloats(tables.Floats, c.floats, c.null), nil
}

// stringCodes numbers the strings of a column.
type stringCodes struct {
	rows []uint32 // the number of each row's string
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
	if c.of == nil {
		c.of = map[string]uint32{}
	}
	fresh := uint32(len(c.of))
	c.of[string(b)] = fresh
	return fresh, nil
}

// vector returns the strings of all rows, with numbers in their order, because the pages of a file come in any order.
func (c *stringCodes) vector(null []bool) *tables.Vector {
	sorted := slices.Sorted(maps.Keys(c.of))
	numbers := make([]uint32, len(sorted))
	for number, name := range sorted {
		numbers[c.of[name]] = uint32(number)
	}
	for i, code := range c.rows {
		if null == nil || !null[i] {
			c.rows[i] = numbers[code]
		}
	}
	return tables.NewCoded(c.rows, sorted, null)
}

// rename replaces the strings; several may become the same.
func (c *stringCodes) rename(names map[string]string) {
	fresh := map[string]uint32{}
	numbers := make([]uint32, len(c.of))
	for old, code := range c.of {
		name := names[old]
		if _, ok := fresh[name]; !ok {
			fresh[name] = uint32(len(fresh))
		}
		numbers[code] = fresh[name]
	}
	for i, code := range c.rows {
		if len(numbers) > 0 { // else all rows are null
			c.rows[i] = numbers[code]
		}
	}
	c.of = fresh
}
