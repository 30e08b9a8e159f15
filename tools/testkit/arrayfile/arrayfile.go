// Package arrayfile compares what is read of files of arrays with what the library of their format reads, and gives
// readers damaged ones.
package arrayfile

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/source/openers"
	"github.com/chaski-eo/chaski/store/arrays"
	"github.com/chaski-eo/chaski/tools/testkit/corpus"
	"github.com/chaski-eo/chaski/tools/testkit/race"
	"github.com/chaski-eo/chaski/tools/testkit/testfile"
)

// Opens opens a file.
type Opens func(ctx context.Context, o source.Opener, uri string, opt arrays.Options) (*arrays.Node, error)

// Array is what the library reads of an array: of numbers its elements in C order, little-endian, of texts the texts.
type Array struct {
	Shape  []int64
	DType  string
	SHA256 string
	Texts  []string
}

// Expected returns the expected.json of a folder: the arrays of each file, nil for one that is not read.
func Expected(t *testing.T, folder string) (files map[string]map[string]*Array) {
	t.Helper()
	text := testfile.Read(t, filepath.Join(folder, "expected.json"))
	if err := json.Unmarshal(text, &files); err != nil {
		t.Fatal(err)
	}
	return files
}

// Compare compares the files of a folder, or of the one in an environment variable, with its expected.json.
func Compare(t *testing.T, folder, variable string, open Opens) {
	t.Helper()
	folder = cmp.Or(os.Getenv(variable), folder)
	for name, want := range Expected(t, folder) {
		t.Run(name, func(t *testing.T) {
			node, err := open(context.Background(), &openers.Files{}, filepath.Join(folder, name), arrays.Options{})
			if err != nil {
				t.Fatal(err)
			}
			list, err := node.Members(context.Background())
			if err != nil {
				t.Fatal(err)
			}
			seen := 0
			for _, member := range list {
				expected, ok := want[member.Path]
				if !ok && fault.KindOf(member.Err) == fault.Unsupported {
					continue // such as a link to another file
				}
				if seen++; !ok {
					t.Errorf("%s: the library has none", member.Path)
					continue
				}
				One(t, node, member, expected)
			}
			if seen != len(want) {
				t.Errorf("%d arrays, the library reads %d", seen, len(want))
			}
		})
	}
}

// One compares an array.
func One(t *testing.T, node *arrays.Node, m arrays.Member, want *Array) {
	t.Helper()
	ctx := context.Background()
	if want != nil && want.Texts != nil {
		labels, err := node.Labels(ctx, m.Path)
		if err != nil {
			t.Errorf("%s: %v", m.Path, err)
			return
		}
		for i, text := range want.Texts {
			if labels.Len() != int64(len(want.Texts)) || string(labels.Value(int64(i)).Text) != text {
				t.Errorf("%s: text %d of %d is not %q", m.Path, i, labels.Len(), text)
			}
		}
		return
	}
	if want == nil {
		if fault.KindOf(m.Err) != fault.Unsupported {
			t.Errorf("%s: %v, should not be supported", m.Path, m.Err)
		}
		return
	}
	if m.Err != nil {
		t.Errorf("%s: %v", m.Path, m.Err)
		return
	}
	dtype := m.Array.DType.String()
	if m.Array.Bool {
		dtype = "bool"
	}
	if !slices.Equal(m.Array.Shape, want.Shape) || dtype != want.DType {
		t.Errorf("%s: %v of %s, the library has %v of %s", m.Path, m.Array.Shape, dtype, want.Shape, want.DType)
		return
	}
	data, err := read(ctx, m.Array)
	sum := sha256.Sum256(data)
	if err != nil || hex.EncodeToString(sum[:]) != want.SHA256 {
		t.Errorf("%s: %v, other elements than the library reads", m.Path, err)
	}
}

// read returns all elements of an array.
func read(ctx context.Context, a *arrays.Array) ([]byte, error) {
	size := int64(a.DType.Size())
	for _, n := range a.Shape {
		size *= n
	}
	out := make([]byte, size)
	if size == 0 {
		return out, nil
	}
	return out, a.Read(ctx, out, make([]int64, len(a.Shape)), a.Shape)
}

// Damage reads damaged copies of files.
func Damage(t *testing.T, open Opens, files ...string) {
	t.Helper()
	race.SkipCovered(t)
	random := rand.New(rand.NewPCG(3, 4))
	copies := 150
	if testing.Short() {
		copies = 20
	}
	for _, name := range files {
		good := testfile.Read(t, name)
		for range copies {
			bad := slices.Clone(good)
			for range 1 + random.IntN(20) {
				bad[random.IntN(len(bad))] ^= 1 << random.IntN(8)
			}
			ReadAll(t, bad, filepath.Base(name), open)
		}
	}
}

// ReadAll reads all that a file has, up to 1 MiB of each array, or is refused with a kind. Verify finds a fault in what
// cannot be read.
func ReadAll(t *testing.T, b []byte, name string, open Opens) {
	t.Helper()
	ctx := context.Background()
	one := source.OpenOne(func(context.Context) (source.Reader, error) { return &corpus.Mem{B: b}, nil })
	known := func(err error) {
		t.Helper()
		if err != nil && fault.KindOf(err) == 0 {
			t.Fatalf("an error without a kind: %v", err)
		}
	}
	node, err := open(ctx, one, name, arrays.Options{MaxChunk: 1 << 20, MaxMeta: 16 << 20})
	if known(err); err != nil {
		return
	}
	list, err := node.Members(ctx)
	known(err)
	for _, m := range list {
		labels, err := node.Labels(ctx, m.Path)
		if known(err); err == nil && labels.Len() > 0 {
			labels.Value(labels.Len() - 1)
		}
		if m.Array == nil || arrays.Cells(m.Array.Shape, 1<<17) < 0 {
			continue
		}
		node.Place(ctx, m.Array)
		_, err = read(ctx, m.Array)
		if known(err); err != nil {
			if checked, err := m.Array.Verify(ctx, 1); err == nil {
				t.Errorf("%s cannot be read, and %+v has no fault", m.Path, checked)
			}
		}
	}
}
