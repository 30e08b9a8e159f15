package shm

import (
	"bytes"
	"testing"
)

// FuzzPacket parses any packet of the control socket: it is refused, or it is the bytes of the message that it is read
// as, of a known kind.
func FuzzPacket(f *testing.F) {
	f.Add([]byte{})
	for k := Hello - 1; k <= Discard+1; k++ {
		f.Add(Message{Kind: k, A: 1, B: 1 << 63, C: Version}.bytes())
	}
	f.Add(Greeting(Hello, Token{1, 15: 2}).bytes()[:Size-1])
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := parse(b)
		if err != nil {
			return
		}
		if m.Kind < Hello || m.Kind > Discard || !bytes.Equal(m.bytes(), b) {
			t.Fatalf("%x is read as %+v", b, m)
		}
		if g := Greeting(m.Kind, m.Token()); g.A != m.A || g.B != m.B {
			t.Fatalf("%x: the token of %+v gives %+v", b, m, g)
		}
	})
}
