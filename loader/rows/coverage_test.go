package rows

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/budget"
	"github.com/chaski-eo/chaski/loader/resources"
	"github.com/chaski-eo/chaski/loader/spec"
	"github.com/chaski-eo/chaski/shuffle"
	"github.com/chaski-eo/chaski/tools/testkit/folder"
)

// drawCounts draws a file of weights, in which some rows could not be read, and the valid pixels of each row.
func drawCounts(t *rapid.T) (w *Weights, valid [][][]bool) {
	head := WeightsHeader{Version: 1, CellHeight: rapid.IntRange(1, 3).Draw(t, "cell rows"),
		CellWidth: rapid.IntRange(1, 3).Draw(t, "cell columns"), Field: "x"}
	var counts []cellCounts
	for range rapid.IntRange(1, 4).Draw(t, "rows") {
		if rapid.IntRange(0, 4).Draw(t, "unread") == 0 {
			counts, valid = append(counts, cellCounts{}), append(valid, nil)
			continue
		}
		height, width := rapid.IntRange(1, 9).Draw(t, "height"), rapid.IntRange(1, 9).Draw(t, "width")
		pixels := make([][]bool, height)
		for y := range pixels {
			pixels[y] = make([]bool, width)
		}
		row := cellCounts{Height: uint32(height), Width: uint32(width)}
		for top := 0; top < height; top += head.CellHeight {
			for left := 0; left < width; left += head.CellWidth {
				cell, full := uint32(0), rapid.Bool().Draw(t, "full")
				for y := top; full && y < min(top+head.CellHeight, height); y++ {
					for x := left; x < min(left+head.CellWidth, width); x++ {
						pixels[y][x] = true
						cell++
					}
				}
				row.Cells = append(row.Cells, cell)
			}
		}
		counts, valid = append(counts, row), append(valid, pixels)
	}
	head.Rows = int64(len(counts))
	w, err := ParseWeights(weightsFile(head, counts...))
	if err != nil {
		t.Fatal(err)
	}
	return w, valid
}

// missing counts the pixels of a window that have no data.
func missing(valid [][]bool, b shuffle.Box) (n int) {
	for y := b.Y; y < b.Y+b.H; y++ {
		for x := b.X; x < b.X+b.W; x++ {
			if y >= len(valid) || x >= len(valid[y]) || !valid[y][x] {
				n++
			}
		}
	}
	return n
}

// TestLimitsOfCoverage: a grid has the windows, and a dataset the rows, of which one counts few enough pixels without
// data. A grid keeps a window of a row whose size is not known; a row that was not counted is left out.
func TestLimitsOfCoverage(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w, valid := drawCounts(t)
		side := rapid.IntRange(1, 4).Draw(t, "side")
		limit := float64(rapid.IntRange(0, side*side).Draw(t, "limit")) / float64(side*side)
		grid := &shuffle.Grid{H: side, W: side, StrideY: side, StrideX: side, AlignY: 1, AlignX: 1}
		sampler := &shuffle.Sampler{Kind: grid, MaxNoData: &limit}
		unknown := rapid.Bool().Draw(t, "unknown")
		sizes := func(i int64) (row int64, height, width int) {
			height, width = w.Size(i)
			if unknown && i == 0 {
				height, width = 0, 0
			}
			return i, height, width
		}
		all, err := w.LimitGrid(context.Background(), sampler, w.Rows, sizes)
		if err != nil {
			t.Fatal(err)
		}
		var want []uint32
		wantAll := int64(0)
		for i := range w.Rows {
			_, height, width := sizes(i)
			before := len(want)
			for j := range grid.Count(height, width) {
				box := grid.At(j, height, width)
				if wantAll++; height == 0 || float64(missing(valid[i], box)) <= limit*float64(side*side) {
					want = append(want, uint32(j))
				}
			}
			if got := sampler.Runs.Count(i); got != int64(len(want)-before) {
				t.Fatalf("row %d has %d windows, want %d", i, got, len(want)-before)
			}
		}
		if all != wantAll || !slices.Equal(sampler.Windows, want) {
			t.Fatalf("windows %v of %d, want %v of %d", sampler.Windows, all, want, wantAll)
		}
		var rows []uint32
		for i, pixels := range valid {
			if len(pixels) == 0 {
				continue
			}
			whole := shuffle.Box{H: len(pixels), W: len(pixels[0])}
			if float64(missing(pixels, whole)) <= limit*float64(whole.H*whole.W) {
				rows = append(rows, uint32(i))
			}
		}
		chips := &shuffle.Sampler{Kind: shuffle.WholeChip{}, MaxNoData: &limit}
		got, err := w.Covered(context.Background(), chips, w.Rows, func(i int64) int64 { return i })
		if err != nil || !slices.Equal(got, rows) {
			t.Fatalf("rows %v, want %v; %v", got, rows, err)
		}
		cancelled, cancel := context.WithCancel(context.Background())
		cancel()
		_, err = w.Covered(cancelled, chips, w.Rows, func(i int64) int64 { return i })
		_, gridErr := w.LimitGrid(cancelled, sampler, w.Rows, sizes)
		if !errors.Is(err, context.Canceled) || !errors.Is(gridErr, context.Canceled) {
			t.Fatalf("after the end: %v, %v", err, gridErr)
		}
	})
}

// TestWeightsAtTheBounds: a header at its bounds is read, and one beyond them is refused.
func TestWeightsAtTheBounds(t *testing.T) {
	file := func(version, rows, cellH, cellW int, height, width uint32, cells ...uint32) []byte {
		head := WeightsHeader{Version: version, Rows: int64(rows), CellHeight: cellH, CellWidth: cellW, Field: "x"}
		return weightsFile(head, cellCounts{height, width, cells})
	}
	const most = spec.MaxWindow
	for _, c := range []struct {
		accepted, refused []byte
		kind              fault.Kind
	}{
		{file(1, 1, 1, 1, 1, 1, 5), file(2, 1, 1, 1, 1, 1, 5), fault.Unsupported},
		{file(1, 1, most, 1, 1, 1, 5), file(1, 1, most+1, 1, 1, 1, 5), fault.Corrupt},
		{file(1, 1, 1, most, 1, 1, 5), file(1, 1, 1, most+1, 1, 1, 5), fault.Corrupt},
		{file(1, 1, 1, 1, 1, 1, 5), file(1, 1, 0, 1, 1, 1, 5), fault.Corrupt},
		{file(1, 1, 1, 1, 1, 1, 5), file(1, 1, 1, 0, 1, 1, 5), fault.Corrupt},
		{file(1, 1, 2, 2, 3, 2, 5, 6), file(1, 1, 2, 2, 3, 2, 5), fault.Corrupt},
		{file(1, 1, 2, 2, 2, 3, 5, 6), file(1, 1, 2, 2, 2, 3, 5, 6, 7), fault.Corrupt},
		{file(1, 1, 2, 2, 0, math.MaxInt32), file(1, 1, 2, 2, 0, math.MaxInt32+1), fault.Corrupt},
		{file(1, 1, 2, 2, math.MaxInt32, 0), file(1, 1, 2, 2, math.MaxInt32+1, 0), fault.Corrupt},
		{file(1, 1, 2, 2, 0, 0), file(1, -1, 2, 2, 0, 0), fault.Corrupt},
		{file(1, 1, 2, 2, 0, 0), file(1, 2, 2, 2, 0, 0), fault.Corrupt},
	} {
		if _, err := ParseWeights(c.accepted); err != nil {
			t.Errorf("%q: %v", c.accepted, err)
		}
		if _, err := ParseWeights(c.refused); fault.KindOf(err) != c.kind {
			t.Errorf("%q: %v, want %v", c.refused, err, c.kind)
		}
	}
	head := file(1, 0, 2, 2, 0, 0)
	head = head[:len(head)-8] // no row
	if w, err := ParseWeights(head); err != nil || w.Rows != 0 {
		t.Errorf("a file without rows: %v", err)
	}
	for _, short := range []int{0, 7, 11, 12, len(head) - 1} {
		if _, err := ParseWeights(head[:short]); fault.KindOf(err) != fault.Corrupt {
			t.Errorf("the first %d bytes: %v", short, err)
		}
	}
	const counted = "12 bytes of cells, where there should be 8"
	if _, err := ParseWeights(file(1, 1, 2, 2, 2, 3, 5, 6, 7)); !strings.Contains(fmt.Sprint(err), counted) {
		t.Errorf("3 cells in place of 2: %v", err)
	}
	w, err := ParseWeights(file(1, 1, 2, 2, 3, 2, 5, 6))
	if err != nil {
		t.Fatal(err)
	}
	for _, size := range [][2]int{{3, 2}, {2, 2}, {3, 3}, {2, 3}} {
		cells, err := w.Of(0, size[0], size[1])
		if same := size == [2]int{3, 2}; same != (err == nil) || same && fmt.Sprint(cells.Sums) != "[5 11]" {
			t.Errorf("an asset of %v: %+v, %v", size, cells, err)
		}
	}
}

// TestMemoryOfWeights: a file of weights takes its bytes and as many for the ends of its rows, and the rows that a
// sampler draws from take 4 bytes each. Without room for them they are refused.
func TestMemoryOfWeights(t *testing.T) {
	head := WeightsHeader{Version: 1, Rows: 2, CellHeight: 2, CellWidth: 2, Field: "x"}
	file := weightsFile(head, cellCounts{2, 2, []uint32{4}}, cellCounts{2, 2, []uint32{0}})
	o := resources.Options{Opener: folder.Memory{Name: "w", Data: file}}
	nothing := 0.0
	sampler := &shuffle.Sampler{Kind: shuffle.WholeChip{}, MaxNoData: &nothing}
	same := func(i int64) int64 { return i }
	account, err := budget.New(1<<20).Open(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	defer account.Close()
	ctx := budget.With(t.Context(), account)
	w, err := OpenCoverage(ctx, "w", o, inMemory(2, 0, nil))
	if size := int64(len(file)); err != nil || account.Held() != 2*size {
		t.Fatalf("a file of %d bytes takes %d, %v", size, account.Held(), err)
	}
	before := account.Held()
	if rows, err := w.Covered(ctx, sampler, 2, same); err != nil || !slices.Equal(rows, []uint32{0}) ||
		account.Held() != before+4*2 {
		t.Errorf("rows %v of 2 take %d bytes, %v", rows, account.Held()-before, err)
	}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := OpenCoverage(cancelled, "w", o, inMemory(2, 0, nil)); !errors.Is(err, context.Canceled) {
		t.Errorf("after the end: %v", err)
	}
	small, err := budget.New(1).Open(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	defer small.Close()
	ctx = budget.With(t.Context(), small)
	_, opened := OpenCoverage(ctx, "w", o, inMemory(2, 0, nil))
	_, covered := w.Covered(ctx, sampler, 2, same)
	if fault.KindOf(opened) != fault.Limit || fault.KindOf(covered) != fault.Limit {
		t.Errorf("without memory: %v, %v", opened, covered)
	}
}
