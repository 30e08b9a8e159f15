package raster_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/budget"
	"github.com/chaski-eo/chaski/internal/pages"
	"github.com/chaski-eo/chaski/loader/batch"
	"github.com/chaski-eo/chaski/loader/raster"
	"github.com/chaski-eo/chaski/loader/resources"
	"github.com/chaski-eo/chaski/tools/testkit/corpus"
	"github.com/chaski-eo/chaski/tools/testkit/testfile"
)

// freed is a holder of a budget. It is called when the budget has memory back.
type freed struct{ look func() }

func (f *freed) Freed()                         { f.look() }
func (*freed) Reclaim(budget.Level) (more bool) { return false }

// mapped reports whether the process has memory at the address of b, as the kernel sees it.
func mapped(t *testing.T, b []byte) bool {
	t.Helper()
	at, err := strconv.ParseUint(fmt.Sprintf("%p", b), 0, 64)
	if err != nil {
		t.Fatal(err)
	}
	maps := testfile.Read(t, "/proc/self/maps")
	for line := range bytes.Lines(maps) {
		first, rest, _ := strings.Cut(string(line), "-")
		last, _, _ := strings.Cut(rest, " ")
		from, err1 := strconv.ParseUint(first, 16, 64)
		to, err2 := strconv.ParseUint(last, 16, 64)
		if err1 != nil || err2 != nil {
			t.Fatalf("a line %q of the memory's map", line)
		}
		if from <= at && at < to {
			return true
		}
	}
	return false
}

// TestReleasedMemoryIsTheKernels: when the budget has the bytes of a large array back, the process does not have them
// any more. Until then the array is the one that is read without a budget.
func TestReleasedMemoryIsTheKernels(t *testing.T) {
	file := filepath.Join(corpus.Testdata(t), "raster", "tog", "rel-sparse-nodata.tif")
	for _, validity := range []bool{false, true} {
		o := raster.ReadOptions{Threads: 2, Validity: validity}
		one, err := raster.Read(t.Context(), []string{file}, o)
		if err != nil {
			t.Fatal(err)
		}
		paths := slices.Repeat([]string{file}, pages.Worth/len(one.Data)+1)
		want, err := raster.Read(t.Context(), paths, o)
		if err != nil {
			t.Fatal(err)
		}
		total := budget.New(64 << 20)
		o.Options = resources.Options{Budget: total}
		a, err := raster.Read(t.Context(), paths, o)
		if err != nil {
			t.Fatal(err)
		}
		data := a.Data
		if !bytes.Equal(data, want.Data) || !bytes.Equal(a.Valid, want.Valid) || !slices.Equal(a.Shape, want.Shape) {
			t.Fatal("the array is not the one that is read without a budget")
		}
		if n := int64(len(data) + len(a.Valid)); total.Used() != n || !mapped(t, data) {
			t.Fatalf("%d bytes are charged for %d", total.Used(), n)
		}
		told := 0
		leave := total.Join(&freed{func() {
			told++
			if total.Used() == 0 && mapped(t, data) {
				t.Error("the budget has the bytes back, and the process still has them")
			}
		}})
		a.Release()
		a.Release()
		leave()
		if told == 0 || total.Used() != 0 {
			t.Errorf("%d bytes are charged after the release, told %d times", total.Used(), told)
		}
	}
	if n := pages.Held(); n != 0 {
		t.Errorf("%d bytes are left", n)
	}
}

// TestFailedReadLeavesNoMemory: a read whose last file is damaged leaves no memory and nothing charged.
func TestFailedReadLeavesNoMemory(t *testing.T) {
	good := filepath.Join(corpus.Testdata(t), "raster", "rumi-v1", "qa-1b.tif")
	b, err := os.ReadFile(good)
	if err != nil {
		t.Fatal(err)
	}
	copy(b[len(b)-64:], bytes.Repeat([]byte{0xff}, 64)) // of its last chunk
	bad := filepath.Join(t.TempDir(), "bad.tif")
	testfile.Write(t, bad, b)
	total := budget.New(64 << 20)
	_, err = raster.Read(t.Context(), append(slices.Repeat([]string{good}, 32), bad), raster.ReadOptions{Threads: 4,
		Options: resources.Options{Budget: total}})
	if fault.KindOf(err) != fault.Corrupt || total.Used() != 0 || pages.Held() != 0 {
		t.Errorf("%v; %d bytes are charged, %d held", err, total.Used(), pages.Held())
	}
}

// used is a buffer that another array lay in.
type used struct {
	batch.Buffer
	freed *int
}

func (u used) Free() { *u.freed++ }

// TestReadIntoUsedMemory: Read writes every byte of memory that it is given, where chunks are sparse too.
func TestReadIntoUsedMemory(t *testing.T) {
	for _, name := range []string{"raster/tog/rel-sparse-nodata.tif", "raster/rumi-v1/qa-1b.tif"} {
		paths := slices.Repeat([]string{filepath.Join(corpus.Testdata(t), name)}, 2)
		want, err := raster.Read(t.Context(), paths, raster.ReadOptions{})
		if err != nil {
			t.Fatal(err)
		}
		freed := 0
		a, err := raster.Read(t.Context(), paths, raster.ReadOptions{Alloc: func(n int) batch.Buffer {
			b := batch.NewHeap(n + 100)
			copy(b.Bytes(), bytes.Repeat([]byte{0xaa}, n+100))
			return used{b, &freed}
		}})
		if err != nil || !bytes.Equal(a.Data, want.Data) || a.Memory() == nil {
			t.Errorf("%s: the array is another one: %v", name, err)
		}
		a.Release()
		a.Release()
		if freed != 1 {
			t.Errorf("%s: the memory is freed %d times", name, freed)
		}
	}
}
