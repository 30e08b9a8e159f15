package tensors

import (
	"encoding/binary"
	"math"
	"strconv"
	"strings"

	"github.com/chaski-eo/chaski/fault"
)

// Opcodes of pickles (pickletools.opcodes) that are read.
const (
	opProto, opFrame, opStop                   = '\x80', '\x95', '.'
	opMark, opTuple, opEmptyTuple              = '(', 't', ')'
	opTuple1, opTuple2, opTuple3               = '\x85', '\x86', '\x87'
	opEmptyList, opAppend, opAppends           = ']', 'a', 'e'
	opEmptyDict, opSetItem, opSetItems         = '}', 's', 'u'
	opPut, opLongPut, opMemoize                = 'q', 'r', '\x94'
	opGet, opLongGet                           = 'h', 'j'
	opText, opShortText, opText8               = 'X', '\x8c', '\x8d'
	opInt, opInt1, opInt2, opLong1             = 'J', 'K', 'M', '\x8a'
	opFloat, opNone, opTrue, opFalse           = 'G', 'N', '\x88', '\x89'
	opGlobal, opStackGlobal, opReduce, opBuild = 'c', '\x93', 'R', 'b'
	opPersistent                               = 'Q'
)

// pickleCopies is about the memory of a byte of a pickle: an opcode of one byte makes at most a dict.
const pickleCopies = 64

// Values beside int64, float64, string, bool and nil.
type (
	tuple []any
	list  struct{ items []any }
	dict  struct {
		keys   []string
		values []any
	}
	global  string // "MODULE NAME"
	mark    struct{}
	storage struct{ kind, key string }
	tensor  struct {
		storage       storage
		dtype         string // of a storage without a type
		offset        int64
		shape, stride []int64
	}
)

// machine makes values of a pickle.
type machine struct {
	text  []byte
	at    int
	stack []any
	memo  []any
}

func (m *machine) bad(text string, args ...any) error {
	return fault.At(fault.Corrupt, "data.pkl", int64(m.at), text, args...)
}

// unpickle returns what a pickle makes, without a call of anything.
func unpickle(text []byte) (any, error) {
	m := &machine{text: text}
	for {
		op, err := m.take(1)
		if err != nil {
			return nil, err
		}
		if op[0] == opStop {
			return m.pop()
		}
		if err := m.step(op[0]); err != nil {
			return nil, err
		}
	}
}

// take returns the next n bytes.
func (m *machine) take(n int) ([]byte, error) {
	if n < 0 || n > len(m.text)-m.at {
		return nil, m.bad("it ends after %d bytes", len(m.text))
	}
	m.at += n
	return m.text[m.at-n : m.at], nil
}

// number returns an unsigned number of some bytes.
func (m *machine) number(bytes int) (int, error) {
	b, err := m.take(bytes)
	if err != nil {
		return 0, err
	}
	var all [8]byte
	copy(all[:], b)
	return int(min(binary.LittleEndian.Uint64(all[:]), math.MaxInt32)), nil
}

func (m *machine) push(v any) error {
	m.stack = append(m.stack, v)
	return nil
}

func (m *machine) pop() (any, error) {
	if len(m.stack) == 0 {
		return nil, m.bad("its stack is empty")
	}
	v := m.stack[len(m.stack)-1]
	m.stack = m.stack[:len(m.stack)-1]
	return v, nil
}

// popMark returns the values above the last mark.
func (m *machine) popMark() ([]any, error) {
	for i := len(m.stack) - 1; i >= 0; i-- {
		if _, ok := m.stack[i].(mark); ok {
			values := append([]any(nil), m.stack[i+1:]...)
			m.stack = m.stack[:i]
			return values, nil
		}
	}
	return nil, m.bad("there is no mark")
}

// popN returns the last n values.
func (m *machine) popN(n int) ([]any, error) {
	if len(m.stack) < n {
		return nil, m.bad("its stack is empty")
	}
	values := append([]any(nil), m.stack[len(m.stack)-n:]...)
	m.stack = m.stack[:len(m.stack)-n]
	return values, nil
}

// put keeps the top of the stack.
func (m *machine) put(i int) error {
	if i > len(m.text) || len(m.stack) == 0 {
		return m.bad("value %d is kept of %d bytes", i, len(m.text))
	}
	for len(m.memo) <= i {
		m.memo = append(m.memo, nil)
	}
	m.memo[i] = m.stack[len(m.stack)-1]
	return nil
}

// constants are opcodes that push a value.
var constants = map[byte]func() any{
	opMark: func() any { return mark{} }, opNone: func() any { return nil }, opTrue: func() any { return true },
	opFalse: func() any { return false }, opEmptyTuple: func() any { return tuple{} },
	opEmptyList: func() any { return &list{} }, opEmptyDict: func() any { return &dict{} },
}

// widths are the bytes of the number behind an opcode.
var widths = map[byte]int{opProto: 1, opFrame: 8, opPut: 1, opLongPut: 4, opGet: 1, opLongGet: 4, opText: 4,
	opShortText: 1, opText8: 8, opInt1: 1, opInt2: 2, opLong1: 1}

// step does one opcode.
func (m *machine) step(op byte) (err error) {
	if made := constants[op]; made != nil {
		return m.push(made())
	}
	n := 0
	if width := widths[op]; width > 0 {
		if n, err = m.number(width); err != nil {
			return err
		}
	}
	var values []any
	switch op {
	case opProto, opFrame:
		return nil
	case opPut, opLongPut:
		return m.put(n)
	case opMemoize:
		return m.put(len(m.memo))
	case opGet, opLongGet:
		if n >= len(m.memo) {
			return m.bad("value %d was not kept", n)
		}
		return m.push(m.memo[n])
	case opText, opShortText, opText8:
		text, err := m.take(n)
		if err != nil {
			return err
		}
		return m.push(string(text))
	case opInt1, opInt2:
		return m.push(int64(n))
	case opInt, opLong1, opFloat:
		return m.numeral(op, n)
	case opTuple:
		if values, err = m.popMark(); err != nil {
			return err
		}
		return m.push(tuple(values))
	case opTuple1, opTuple2, opTuple3:
		if values, err = m.popN(int(op - opTuple1 + 1)); err != nil {
			return err
		}
		return m.push(tuple(values))
	case opAppend, opSetItem:
		if values, err = m.popN(map[byte]int{opAppend: 1, opSetItem: 2}[op]); err != nil {
			return err
		}
		return m.extend(values, op == opSetItem)
	case opAppends, opSetItems:
		if values, err = m.popMark(); err != nil {
			return err
		}
		return m.extend(values, op == opSetItems)
	case opGlobal, opStackGlobal:
		return m.global(op)
	case opPersistent:
		return m.persistent()
	case opReduce:
		return m.reduce()
	case opBuild: // the metadata of an OrderedDict, as that of a state_dict has
		if values, err = m.popN(2); err != nil {
			return err
		}
		if _, ok := values[0].(*dict); !ok {
			return m.refuse("an object with a state")
		}
		return m.push(values[0])
	}
	return m.refuse("the opcode " + strconv.QuoteToASCII(string(rune(op))))
}

// refuse returns the error of what is not read.
func (m *machine) refuse(what string) error {
	return fault.At(fault.Unsupported, "data.pkl", int64(m.at), "it holds %s: tensors in dicts, lists and tuples, "+
		"numbers and texts are read", what)
}

// numeral pushes a number with a sign.
func (m *machine) numeral(op byte, n int) error {
	size := map[byte]int{opInt: 4, opLong1: n, opFloat: 8}[op]
	b, err := m.take(size)
	switch {
	case err != nil:
		return err
	case op == opFloat:
		return m.push(math.Float64frombits(binary.BigEndian.Uint64(b)))
	case size > 8:
		return m.refuse("an integer of more than 64 bits")
	}
	var all [8]byte
	copy(all[:], b)
	shift := 64 - 8*size
	return m.push(int64(binary.LittleEndian.Uint64(all[:])<<shift) >> shift)
}

// extend appends values to the list, or pairs to the dict, on the stack.
func (m *machine) extend(values []any, pairs bool) error {
	top, err := m.pop()
	if err != nil {
		return err
	}
	switch container := top.(type) {
	case *list:
		if pairs {
			return m.bad("pairs for a list")
		}
		container.items = append(container.items, values...)
	case *dict:
		if !pairs || len(values)%2 != 0 {
			return m.bad("no pairs for a dict")
		}
		for i := 0; i < len(values); i += 2 {
			switch key := values[i].(type) {
			case string:
				container.keys = append(container.keys, key)
			case int64:
				container.keys = append(container.keys, strconv.FormatInt(key, 10))
			default:
				return m.refuse("a dict whose keys are no texts and no integers")
			}
			container.values = append(container.values, values[i+1])
		}
	default:
		return m.bad("values for no list and no dict")
	}
	return m.push(top)
}

// global pushes the name of a function or a class.
func (m *machine) global(op byte) error {
	if op == opStackGlobal {
		values, err := m.popN(2)
		if err != nil {
			return err
		}
		module, ok1 := values[0].(string)
		name, ok2 := values[1].(string)
		if !ok1 || !ok2 {
			return m.bad("a name that is no text")
		}
		return m.push(global(module + " " + name))
	}
	module, rest, ok1 := strings.Cut(string(m.text[m.at:min(len(m.text), m.at+512)]), "\n")
	name, _, ok2 := strings.Cut(rest, "\n")
	if !ok1 || !ok2 {
		return m.bad("a name without an end")
	}
	m.at += len(module) + len(name) + 2
	return m.push(global(module + " " + name))
}

// persistent pushes a storage: ("storage", class, key, place, elements).
func (m *machine) persistent() error {
	top, err := m.pop()
	if err != nil {
		return err
	}
	id, _ := top.(tuple)
	if len(id) != 5 || id[0] != "storage" {
		return m.refuse("an object outside of it")
	}
	class, ok1 := id[1].(global)
	key, ok2 := id[2].(string)
	if !ok1 || !ok2 {
		return m.bad("a storage without a class or a key")
	}
	return m.push(storage{string(class), key})
}

// reduce makes what a function would: a tensor, a parameter, the sizes of one, or an OrderedDict without members.
func (m *machine) reduce() error {
	values, err := m.popN(2)
	if err != nil {
		return err
	}
	name, ok := values[0].(global)
	args, ok2 := values[1].(tuple)
	if !ok || !ok2 {
		return m.bad("a call of no function")
	}
	switch {
	case name == "collections OrderedDict" && len(args) == 0:
		return m.push(&dict{})
	case name == "torch Size" && len(args) == 1:
		return m.push(args[0])
	case name == "torch._utils _rebuild_parameter" && len(args) > 0:
		return m.push(args[0])
	case name == "torch._utils _rebuild_tensor_v2" && len(args) >= 4:
		return m.tensor(args, "")
	case name == "torch._utils _rebuild_tensor_v3" && len(args) >= 7:
		dtype, _ := args[6].(global)
		return m.tensor(args, string(dtype))
	}
	return m.refuse("what " + strings.ReplaceAll(string(name), " ", ".") + " makes")
}

// tensor pushes a tensor: (storage, offset, sizes, strides, …). A dict may follow hooks and a type, of bits that change
// what its samples mean: neg of one that is to be negated.
func (m *machine) tensor(args tuple, dtype string) error {
	t := &tensor{dtype: dtype}
	var ok1, ok2, ok3, ok4 bool
	if extras, ok := args[len(args)-1].(*dict); ok && len(args) > 6 && len(extras.keys) > 0 {
		return fault.At(fault.Unsupported, "data.pkl", int64(m.at), "a tensor is a view with %q, which is not read: "+
			"save x.clone()", extras.keys)
	}
	t.storage, ok1 = args[0].(storage)
	t.offset, ok2 = args[1].(int64)
	t.shape, ok3 = integers(args[2])
	t.stride, ok4 = integers(args[3])
	known := ok1 && ok2 && ok3 && ok4
	if !known || t.offset < 0 || len(t.shape) != len(t.stride) {
		return m.bad("a tensor without a storage, sizes or strides")
	}
	return m.push(t)
}

// integers returns a tuple of numbers of at least 0.
func integers(v any) (out []int64, ok bool) {
	values, ok := v.(tuple)
	for _, value := range values {
		n, is := value.(int64)
		if !is || n < 0 {
			return nil, false
		}
		out = append(out, n)
	}
	return out, ok
}
