package cursor

import (
	"encoding/binary"
	"errors"
	"math"
	"testing"

	"github.com/chaski-eo/chaski/fault"
)

// TestNumbers: numbers come back as encoding/binary writes them, and every cut is an error.
func TestNumbers(t *testing.T) {
	for _, v := range []uint64{0, 1, 127, 128, 1 << 14, 1<<35 - 1, math.MaxUint64} {
		b := binary.AppendUvarint(nil, v)
		if UvarintLen(v) != len(b) {
			t.Errorf("%d has %d bytes, not %d", v, len(b), UvarintLen(v))
		}
		s := int64(v)
		b = binary.LittleEndian.AppendUint64(append(binary.AppendVarint(b, s), 7), v)
		c := Cursor{B: b}
		got, signed, one, fixed := c.Uvarint(), c.Varint(), c.U8(), c.U64()
		if got != v || signed != s || one != 7 || fixed != v {
			t.Errorf("%d: %d, %d, %d, %d", v, got, signed, one, fixed)
		}
		if c.End(); c.Err != nil || Unzigzag(Zigzag(s)) != s {
			t.Errorf("%d: %v", v, c.Err)
		}
		for n := range b {
			c := Cursor{B: b[:n]}
			c.Uvarint()
			c.Varint()
			c.U8()
			if c.U64(); !errors.Is(c.Err, fault.Corrupt) {
				t.Errorf("%d cut to %d bytes: %v", v, n, c.Err)
			}
		}
	}
}

func TestRefuses(t *testing.T) {
	for name, b := range map[string][]byte{
		"a longer form": {0x80, 0},
		"over 64 bits":  {255, 255, 255, 255, 255, 255, 255, 255, 255, 2},
		"too long":      {128, 128, 128, 128, 128, 128, 128, 128, 128, 128, 1},
	} {
		c := Cursor{B: b, Part: "form"}
		if v := c.Uvarint(); v != 0 || !errors.Is(c.Err, fault.Corrupt) {
			t.Errorf("%s: %d, %v", name, v, c.Err)
		}
	}
	c := Cursor{B: []byte("ABCD\x01xy"), Part: "form"}
	if v := c.Magic("ABCD", "a form"); v != 1 || c.Err != nil {
		t.Errorf("version %d, %v", v, c.Err)
	}
	c.End()
	first := c.Err
	c.Fail(fault.Limit, "later")
	if c.Bytes(1) != nil || c.U8() != 0 || c.Uvarint() != 0 || first == nil || c.Err != first ||
		first.Error() != "form at 5: 2 bytes too many: corrupt" {
		t.Errorf("%v, then %v", first, c.Err)
	}
	c = Cursor{B: []byte("ABCE\x01"), Part: "form"}
	if c.Magic("ABCD", "a form"); c.Err == nil || c.Err.Error() != "form at 0: not a form: corrupt" {
		t.Error(c.Err)
	}
}
