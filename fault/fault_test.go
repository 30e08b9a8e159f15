package fault_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"testing"

	"github.com/chaski-eo/chaski/fault"
)

func TestText(t *testing.T) {
	for want, err := range map[string]error{
		"tile 18 at 99: short: corrupt":  fault.At(fault.Corrupt, "tile 18", 99, "short"),
		"a.tif: tile 18: short: corrupt": fault.WithFile(fault.New(fault.Corrupt, "tile 18", "short"), "a.tif"),
		"a.tif: short: limit": fault.WithFile(fault.At(fault.Limit, "", 5, "short"),
			"a.tif"),
		"chunk 3 frame header at 112: magic: unsupported": fault.WithPart(fault.At(fault.Unsupported, "frame header",
			12, "magic"), "chunk 3", 100),
		"chunk 3 frame header at 100: magic: unsupported": fault.WithPart(fault.New(fault.Unsupported, "frame header",
			"magic"), "chunk 3", 100),
		"chunk 3 frame header: magic: unsupported": fault.WithPart(fault.At(fault.Unsupported, "frame header",
			12, "magic"), "chunk 3", fault.NoOffset),
		"chunk 3 at 7: magic: not found": fault.AtOffset(fault.New(fault.NotFound, "chunk 3", "magic"), 7),
		"chunk 3 at 1: magic: not found": fault.AtOffset(fault.At(fault.NotFound, "chunk 3", 1,
			"magic"), 7),
		"open x: not found":           fault.New(fault.NotFound, "", "open x: no such file or directory"),
		"object: HTTP 404: not found": fault.New(fault.NotFound, "object", "no such object (HTTP 404)"),
		"array: unsupported":          fault.New(fault.Unsupported, "array", "unsupported"),
		"file: not found":             fault.Wrap(fault.NotFound, "file", fs.ErrNotExist),
		"inner.tif: table tile 1 at 4: short: corrupt": fault.Wrap(fault.Limit, "table",
			fault.WithFile(fault.At(fault.Corrupt, "tile 1", 4, "short"), "inner.tif")),
		"inner.tif: tile 1 at 4: short: corrupt": fault.WithFile(fault.WithFile(fault.At(fault.Corrupt,
			"tile 1", 4, "short"), "inner.tif"), "outer.parquet"),
		"plain": fault.WithFile(fault.WithPart(fault.AtOffset(errors.New("plain"), 1), "p", 1), "f"),
	} {
		if got := err.Error(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestKindSurvivesWrapping(t *testing.T) {
	cause := &os.PathError{Op: "open", Path: "x", Err: fs.ErrNotExist}
	err := fmt.Errorf("sample 3: %w",
		errors.Join(fmt.Errorf("again: %w", fault.Wrap(fault.NotFound, "file", cause))))
	if !errors.Is(err, fault.NotFound) || fault.KindOf(err) != fault.NotFound || !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("kind %v of %v", fault.KindOf(err), err)
	}
	if errors.Is(err, fault.Corrupt) {
		t.Error("it is two kinds")
	}
	if k := fault.KindOf(errors.New("x")); k != 0 {
		t.Errorf("a plain error has kind %v", k)
	}
	if k := fault.KindOf(fmt.Errorf("so: %w", fault.Limit)); k != fault.Limit {
		t.Errorf("a bare kind gives %v", k)
	}
}

// TestOriginalIsNotChanged: the functions that add to an error return a new one.
func TestOriginalIsNotChanged(t *testing.T) {
	e := fault.New(fault.Corrupt, "tile", "short")
	before := *e
	_ = fault.WithFile(e, "f")
	_ = fault.WithPart(e, "p", 3)
	_ = fault.AtOffset(e, 3)
	_ = fault.WrapAt(fault.Limit, "q", 1, e)
	if *e != before {
		t.Errorf("changed to %+v", e)
	}
}

func TestLineIsOneLine(t *testing.T) {
	err := fault.WithFile(fault.At(fault.Corrupt, "tile", 1, "a\nb"), "x\r\x1b[31m\u202e\u2028é.tif")
	if got, want := fault.Line(err), "x  [31m  é.tif: tile at 1: a b: corrupt"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
