package build

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chaski-eo/chaski/internal/durable"
	"github.com/chaski-eo/chaski/store/taco/internal/taco2"
	"github.com/chaski-eo/chaski/tools/testkit/race"
)

// numbered is a dataset whose files and columns tell its number.
func numbered(n int) *Taco {
	folder := func(i int) *Tortilla {
		return &Tortilla{Samples: []Sample{{ID: "x", Bytes: bytes.Repeat([]byte{byte(n)}, 1000*i)},
			{ID: "y", Bytes: []byte(fmt.Sprint(n))}}}
	}
	return &Taco{
		Collection: Collection{ID: "numbered", DatasetVersion: fmt.Sprint(n), Description: "d",
			Licenses: []string{"CC0"}, Providers: []map[string]any{{"name": "p"}}, Tasks: []string{"other"},
			Curators: []map[string]any{{"name": "c"}}},
		Samples: &Tortilla{Samples: []Sample{{ID: "b", Children: folder(1)}, {ID: "a", Children: folder(2)}}},
	}
}

// contentAt returns what is at path: the bytes of a file, or the names and bytes of all files below a folder.
func contentAt(t *testing.T, path string) string {
	t.Helper()
	var b strings.Builder
	err := filepath.WalkDir(path, func(name string, e fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) && name == path {
			return nil
		}
		if err != nil || e.IsDir() {
			return err
		}
		data, err := os.ReadFile(name)
		fmt.Fprintf(&b, "%s %q\n", strings.TrimPrefix(name, path), data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// faults fails the operation with a number: a write, a sync or a rename.
type faults struct{ at, n int }

var errInjected = errors.New("injected")

func (f *faults) next() error {
	f.n++
	if f.n == f.at {
		return errInjected
	}
	return nil
}

// failing is a file whose writes may fail, after a part of them.
type failing struct {
	archiveFile
	f *faults
}

func (w failing) Write(p []byte) (int, error) {
	if err := w.f.next(); err != nil {
		n, _ := w.archiveFile.Write(p[:len(p)/2])
		return n, err
	}
	return w.archiveFile.Write(p)
}

func (w failing) WriteAt(p []byte, off int64) (int, error) {
	if err := w.f.next(); err != nil {
		return 0, err
	}
	return w.archiveFile.WriteAt(p, off)
}

func (f *faults) inject(t *testing.T) {
	old := disk
	disk = func(file *os.File) archiveFile { return failing{old(file), f} }
	restore := durable.Inject(
		func(file *os.File) error {
			if err := f.next(); err != nil {
				return err
			}
			return file.Sync()
		},
		func(from, to string) error {
			if err := f.next(); err != nil {
				return err
			}
			return os.Rename(from, to)
		})
	exchanges := durable.InjectExchange(func(a, b string) error {
		if err := f.next(); err != nil {
			return err
		}
		return durable.Exchange(a, b)
	})
	t.Cleanup(func() { exchanges(); restore(); disk = old })
}

// TestEveryFaultOfAnIndex: whichever write, sync, rename or exchange fails, Consolidate says so, the index is the old
// one or the new one, and nothing is left beside it.
func TestEveryFaultOfAnIndex(t *testing.T) {
	race.SkipCovered(t)
	dir := t.TempDir()
	var zips []string
	for n := range 2 {
		zips = append(zips, filepath.Join(dir, fmt.Sprint(n, ".tacozip")))
		if _, err := Create(t.Context(), numbered(n), zips[n], Options{}); err != nil {
			t.Fatal(err)
		}
	}
	f := &faults{}
	f.inject(t)
	for _, name := range []string{tacocatName, tacocatFileName, tacollectionName} {
		path := filepath.Join(dir, name)
		write := func(zips []string, at int) (string, error) {
			f.at, f.n = at, 0
			_, err := Consolidate(t.Context(), zips, path, Options{})
			return contentAt(t, path), err
		}
		want, err := write(zips, -1)
		operations := f.n
		if err != nil || operations < 3 {
			t.Fatal(operations, err)
		}
		for at := 1; at <= operations; at++ {
			old, err := write(zips[:1], -1)
			if err != nil {
				t.Fatal(err)
			}
			got, err := write(zips, at)
			if !errors.Is(err, errInjected) || got != old && got != want {
				t.Errorf("%s: operation %d of %d fails: %v, and leaves %.200s", name, at, operations, err, got)
			}
			if got != old && at < operations {
				t.Errorf("%s: operation %d of %d fails, and the index is new", name, at, operations)
			}
			left, err := os.ReadDir(dir)
			if err != nil || len(left) != 3 {
				t.Fatalf("%s: operation %d of %d fails, and leaves %v %v", name, at, operations, left, err)
			}
		}
		if err := os.RemoveAll(path); err != nil {
			t.Fatal(err)
		}
	}
}

// TestEveryFaultLeavesTheOldOrTheNew: whichever write, sync or rename fails, Create says so, the container is the old
// one or the new one, and nothing is left beside it.
func TestEveryFaultLeavesTheOldOrTheNew(t *testing.T) {
	race.SkipCovered(t)
	for _, name := range []string{"a.tacozip", "a", "a.taco3.zip", "a.taco3"} {
		t.Run(name, func(t *testing.T) {
			f := &faults{}
			f.inject(t)
			create := func(dir string, at int) (string, error) {
				path := filepath.Join(dir, name)
				old := ""
				if FormOf(name).OneFile() {
					f.at = -1
					if _, err := Create(t.Context(), numbered(1), path, Options{}); err != nil {
						t.Fatal(err)
					}
					old = contentAt(t, path)
				}
				f.at, f.n = at, 0
				_, err := Create(t.Context(), numbered(2), path, Options{})
				return old, err
			}
			dir := t.TempDir()
			if _, err := create(dir, -1); err != nil {
				t.Fatal(err)
			}
			want, operations := contentAt(t, filepath.Join(dir, name)), f.n
			if operations < 6 { // at least a write, two patches, a sync, a rename and the sync of the folder
				t.Fatalf("only %d operations", operations)
			}
			for at := 1; at <= operations; at++ {
				dir := t.TempDir()
				old, err := create(dir, at)
				if !errors.Is(err, errInjected) {
					t.Fatalf("operation %d of %d fails: %v", at, operations, err)
				}
				got := contentAt(t, filepath.Join(dir, name))
				// After the rename only the sync of the folder's names is left.
				if got != old && (got != want || at < operations) {
					t.Fatalf("operation %d of %d fails, and leaves %.200s", at, operations, got)
				}
				left, err := os.ReadDir(dir)
				if err != nil || len(left) > 1 || len(left) == 1 && left[0].Name() != name {
					t.Fatalf("operation %d of %d fails, and leaves %v %v", at, operations, left, err)
				}
			}
		})
	}
}

// The child of TestKills writes containers of two kinds to the path in this variable, until it is killed.
const killed = "CHASKI_TEST_KILLED"

// TestKills: a process that writes containers over each other is killed at random moments. What is there is always one
// of them, whole.
func TestKills(t *testing.T) {
	if path := os.Getenv(killed); path != "" {
		for i := range 1 << 20 { // ends even if nobody kills it
			if _, err := Create(t.Context(), numbered(i%2), path, Options{}); err != nil {
				t.Fatal(err)
			}
			fmt.Println("written")
		}
		return
	}
	rng := rand.New(rand.NewPCG(1, 2))
	for _, name := range []string{"a.tacozip", "a.taco3.zip"} {
		path := filepath.Join(t.TempDir(), name)
		var whole []string
		for n := range 2 {
			if _, err := Create(t.Context(), numbered(n), path, Options{}); err != nil {
				t.Fatal(err)
			}
			whole = append(whole, contentAt(t, path))
		}
		kills := 10
		if testing.Short() {
			kills = 4
		}
		for i := range kills {
			killWriter(t, rng, path)
			if got := contentAt(t, path); got != whole[0] && got != whole[1] {
				t.Fatalf("kill %d leaves %.200s", i, got)
			}
		}
	}
}

// killWriter runs TestKills again, with the variable that makes it write to a path until it is killed, and kills it at
// a random moment after its first write.
func killWriter(t *testing.T, rng *rand.Rand, path string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run", "^TestKills$")
	cmd.Env = append(os.Environ(), killed+"="+path)
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(out, make([]byte, 7)); err != nil { // it writes now
		t.Fatal(err)
	}
	// The moment matters to what is covered, not to what holds.
	time.Sleep(time.Duration(rng.IntN(20)) * time.Millisecond)
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
}

// sparse is a file that keeps only what is not zeros written by the caller of large pieces.
type sparse struct {
	size int64
	head map[int64][]byte
}

func (s *sparse) Write(p []byte) (int, error) {
	if len(p) < 1<<16 || bytes.ContainsFunc(p[:64], func(r rune) bool { return r != 0 }) {
		s.head[s.size] = bytes.Clone(p)
	}
	s.size += int64(len(p))
	return len(p), nil
}

func (s *sparse) WriteAt(p []byte, off int64) (int, error) { return len(p), nil }

// zeros reads as zeros without end.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// TestSizesBeyond32Bits: the headers of an entry of 4 GiB and of one behind it have sizes and offsets of 64 bits, where
// PKWARE's APPNOTE.TXT 4.5.3 and 4.3.12 have them.
func TestSizesBeyond32Bits(t *testing.T) {
	if testing.Short() {
		t.Skip("the checksum of 4 GiB takes seconds")
	}
	const size = 1<<32 + 5
	s := &sparse{head: map[int64][]byte{}}
	a := newArchive(s)
	head, err := a.reserve(taco2.HeaderName, make([]byte, taco2.HeaderBytes), nil)
	if err != nil {
		t.Fatal(err)
	}
	big, err := a.copy("DATA/big", size, zeros{})
	if err != nil {
		t.Fatal(err)
	}
	if want := int64(157 + 30 + len("DATA/big") + 20); big.Off != want || big.Size != size {
		t.Fatalf("it is at %+v, want %d", big, want)
	}
	small, err := a.add("DATA/small", []byte("small"), 1)
	if err != nil {
		t.Fatal(err)
	}
	if want := big.Off + size + int64(30+len("DATA/small")); small.Off != want {
		t.Fatalf("the next is at %d, want %d", small.Off, want)
	}
	if err := errors.Join(a.seal(head, taco2.HeaderOf([]span{small, small})), a.finish()); err != nil {
		t.Fatal(err)
	}
	var all []byte
	for at := range s.head {
		all = append(all, s.head[at]...)
	}
	local := "\x01\x00\x10\x00\x05\x00\x00\x00\x01\x00\x00\x00\x05\x00\x00\x00\x01\x00\x00\x00"
	central := "\x01\x00\x18\x00" + local[4:] + "\x9d\x00\x00\x00\x00\x00\x00\x00"
	for what, field := range map[string]string{"local header": "DATA/big" + local, "directory": "DATA/big" + central,
		"record of the end": "PK\x06\x06", "place of the record": "PK\x06\x07"} {
		if !bytes.Contains(all, []byte(field)) {
			t.Errorf("there is no %s of 64 bits", what)
		}
	}
}
