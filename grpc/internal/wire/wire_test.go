package wire

import (
	"errors"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/chaski-eo/chaski/fault"
	chaskiv1 "github.com/chaski-eo/chaski/proto/chaski/v1"
)

func TestFaultsSurviveTheWire(t *testing.T) {
	e := fault.At(fault.Corrupt, "tile 3", 99, "checksum %d", 5)
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
	f := NewFault(4, &fault.RequestError{
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
