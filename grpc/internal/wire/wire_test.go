package wire

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"

	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"

	"github.com/chaski-eo/chaski/fault"
	chaskiv1 "github.com/chaski-eo/chaski/proto/chaski/v1"
	"github.com/chaski-eo/chaski/source"
)

// account is an Owner that counts.
type account struct{ held, put int }

func (a *account) Hold() mem.BufferPool { a.held++; return a }
func (a *account) Put(*[]byte)          { a.put++ }
func (a *account) Get(int) *[]byte      { panic("not for the transport") }

func pieces(sizes ...int) (p [][]byte, all []byte) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, n := range sizes {
		b := make([]byte, n, n+5)
		for i := range b {
			b[i] = byte(r.Uint32())
		}
		p, all = append(p, b), append(all, b...)
	}
	return p, all
}

// TestPartIsAStreamReply: protobuf reads what Marshal writes.
func TestPartIsAStreamReply(t *testing.T) {
	for _, sizes := range [][]int{{1}, {1 << 20}, {64, 1 << 16, 3, 4096, 1024, 1025}, {}} {
		data, all := pieces(sizes...)
		a := &account{}
		out, err := NewCodec().Marshal(&Part{Ticket: 1 << 63, Offset: 0, Total: 1 << 40, Data: data, Owner: a})
		if err != nil {
			t.Fatal(err)
		}
		var m chaskiv1.StreamReply
		if err := proto.Unmarshal(out.Materialize(), &m); err != nil {
			t.Fatal(err)
		}
		p := m.GetPart()
		if p.GetTicket() != 1<<63 || p.GetOffset() != 0 || p.GetTotal() != 1<<40 || !bytes.Equal(p.GetData(), all) {
			t.Errorf("%v: %d at %d of %d", sizes, p.GetTicket(), p.GetOffset(), p.GetTotal())
		}
		for _, d := range data {
			if len(d) > 1024 {
				found := false
				for _, b := range out {
					found = found || b.Len() == len(d) && &b.ReadOnlyData()[0] == &d[0]
				}
				if !found {
					t.Errorf("a piece of %d bytes was copied", len(d))
				}
			}
		}
		if a.put != 0 {
			t.Error("given back before Free")
		}
		out.Free()
		if a.held != a.put {
			t.Errorf("%d pieces held, %d given back", a.held, a.put)
		}
	}
}

// chop cuts b into buffers.
func chop(b []byte, r *rand.Rand) mem.BufferSlice {
	var s mem.BufferSlice
	for len(b) > 0 {
		n := min(len(b), 1+r.IntN(40))
		s = append(s, mem.SliceBuffer(b[:n]))
		b = b[n:]
	}
	return s
}

// sameReply fails unless Reply reads m as protobuf does.
func sameReply(t *testing.T, m []byte) {
	t.Helper()
	var got Reply
	err := NewCodec().Unmarshal(chop(m, rand.New(rand.NewPCG(3, uint64(len(m))))), &got)
	var want chaskiv1.StreamReply
	// A Reply is none that says where the lease socket is: the Go client asks for arrays in parts.
	if werr := proto.Unmarshal(m, &want); werr != nil || want.Kind == nil || want.GetShared() != nil {
		if err == nil {
			t.Fatalf("% x is read, protobuf says %v", m, werr)
		}
		return
	}
	if err != nil {
		t.Fatalf("% x: %v", m, err)
	}
	if f := want.GetFault(); f != nil {
		if !proto.Equal(f, got.Fault) {
			t.Fatalf("% x: fault %v, want %v", m, got.Fault, f)
		}
		return
	}
	p := want.GetPart()
	var data []byte
	if err := got.Each(func(p []byte) error { data = append(data, p...); return nil }); err != nil {
		t.Fatal(err)
	}
	if len(data) != got.Len {
		t.Fatalf("% x: %d bytes of data, Len is %d", m, len(data), got.Len)
	}
	if got.Ticket != p.GetTicket() || got.Offset != p.GetOffset() || got.Total != p.GetTotal() ||
		!bytes.Equal(data, p.GetData()) {
		t.Fatalf("% x: %+v, want %v", m, got, p)
	}
	got.Free()
}

func replies() [][]byte {
	_, data := pieces(100)
	var out [][]byte
	for _, m := range []*chaskiv1.StreamReply{
		{
			Kind: &chaskiv1.StreamReply_Part{
				Part: &chaskiv1.Part{Ticket: 7, Offset: 1 << 33, Total: 1 << 34, Data: data},
			},
		},
		{Kind: &chaskiv1.StreamReply_Part{Part: &chaskiv1.Part{Data: data[:1]}}},
		{Kind: &chaskiv1.StreamReply_Part{Part: &chaskiv1.Part{Ticket: 1}}},
		{Kind: &chaskiv1.StreamReply_Part{Part: &chaskiv1.Part{}}},
		{Kind: &chaskiv1.StreamReply_Fault{Fault: &chaskiv1.Fault{Ticket: 3, Kind: "limit", Message: "no"}}},
		{},
	} {
		b, err := proto.Marshal(m)
		if err != nil {
			panic(err)
		}
		out = append(out, b)
	}
	// Two parts in one message are merged into one, and fields may come in any order.
	return append(out, append(bytes.Clone(out[0]), out[2]...), []byte{0x0a, 6, 0x22, 2, 'a', 'b', 0x08, 9})
}

func TestReplyAgainstProtobuf(t *testing.T) {
	for _, m := range replies() {
		sameReply(t, m)
		for i := range m {
			for _, v := range []byte{0, 1, 0x22, 0x7f, 0x80, 0xff, m[i] + 1} {
				c := bytes.Clone(m)
				c[i] = v
				sameReply(t, c)
			}
			sameReply(t, m[:i])
		}
	}
}

func FuzzReply(f *testing.F) {
	for _, m := range replies() {
		f.Add(m)
	}
	f.Fuzz(func(t *testing.T, m []byte) { sameReply(t, m) })
}

func TestFaultsSurviveTheWire(t *testing.T) {
	e := fault.New(fault.Corrupt, "tile 3", 99, "checksum %d", 5)
	e.File = "a\xff.tif"
	for _, err := range []error{e, errors.New("other"), ErrUnknownSpec} {
		f := NewFault(4, errors.Join(err))
		b, merr := proto.Marshal(f)
		if merr != nil {
			t.Fatal(merr)
		}
		var back chaskiv1.Fault
		if err := proto.Unmarshal(b, &back); err != nil {
			t.Fatal(err)
		}
		got := FaultError(&back)
		if fault.KindOf(got) != fault.KindOf(err) || errors.Is(got, ErrUnknownSpec) != errors.Is(err, ErrUnknownSpec) {
			t.Errorf("%v came back as %v", err, got)
		}
		var g *fault.Error
		if errors.As(got, &g) && (g.Off != 99 || g.Part != "tile 3" || g.File != "a\uFFFD.tif") {
			t.Errorf("%+v", g)
		}
	}
	f := NewFault(4, &source.RequestError{
		URI: "http://host/a.tif", Part: "byte range", Off: 7, Attempts: 5, Err: errors.New("refused"),
	})
	if f.GetKind() != Unavailable || f.GetFile() != "http://host/a.tif" || f.GetPart() != "byte range" ||
		f.GetOffset() != 7 {
		t.Errorf("%v", f)
	}
	got := FaultError(f)
	if fault.KindOf(got) != 0 || !strings.HasSuffix(got.Error(), "refused, after 5 attempts: unavailable") {
		t.Errorf("%v", got)
	}
}
