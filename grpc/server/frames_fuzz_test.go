package server

import (
	"bytes"
	"fmt"
	"testing"

	"golang.org/x/net/http2"
)

// FuzzFrames promises that a connection counts the same, whatever pieces hostile bytes come in, that it counts no less
// than nothing and no more than came, and that nothing is left when it closes.
func FuzzFrames(f *testing.F) {
	var b bytes.Buffer
	w := http2.NewFramer(&b, nil)
	b.WriteString(http2.ClientPreface)
	if err := w.WriteSettings(); err != nil {
		f.Fatal(err)
	}
	// A call is counted after its headers.
	if err := w.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: []byte("\x82")}); err != nil {
		f.Fatal(err)
	}
	if err := w.WriteContinuation(1, true, []byte("\x84")); err != nil {
		f.Fatal(err)
	}
	for _, data := range []string{"\x00\x00\x00\x00\x03abc", "\x00\x00\x00\x00\x09abc", "\x00\xff\xff\xff\xff", ""} {
		if err := w.WriteData(1, false, []byte(data)); err != nil {
			f.Fatal(err)
		}
	}
	f.Add(bytes.Clone(b.Bytes()), uint8(1))
	if err := w.WriteData(1, true, []byte("d")); err != nil {
		f.Fatal(err)
	}
	f.Add(b.Bytes(), uint8(7))
	f.Add([]byte(http2.ClientPreface+"\x00\x00\x01\x00\x08\x00\x00\x00\x01\xff"), uint8(2))
	f.Fuzz(func(t *testing.T, b []byte, piece uint8) {
		count := func(piece int) string {
			a := newArriving(nil, quiet)
			in := newInbound(a)
			for rest := b; len(rest) > 0; {
				n := min(piece, len(rest))
				in.received.scan(rest[:n], &in.arrived)
				rest = rest[n:]
			}
			held := in.held.Load()
			most := int64(len(b)/frameHead)*(16<<10+frameCost) + int64(len(b)/len(incoming{}.head))*messageCost
			if held < 0 || held > most {
				t.Fatalf("%d bytes are counted; between 0 and %d can be", held, most)
			}
			var sum int64
			for _, m := range in.calls {
				sum += m.held
				for _, n := range m.whole {
					sum += n
				}
			}
			if sum != held || a.held.Load() != held {
				t.Fatalf("the calls keep %d bytes, the connection %d, all %d", sum, held, a.held.Load())
			}
			state := fmt.Sprint(held, len(in.calls))
			for call := range in.calls {
				in.ended(call)
			}
			if in.held.Load() != 0 {
				t.Fatalf("after the end of all calls %d bytes are counted", in.held.Load())
			}
			return state
		}
		if whole, cut := count(max(len(b), 1)), count(int(piece)+1); whole != cut {
			t.Errorf("at once %s, in pieces of %d bytes %s", whole, int(piece)+1, cut)
		}
	})
}
