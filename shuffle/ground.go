package shuffle

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"sort"

	"github.com/chaski-eo/chaski/internal/splitmix"
)

// Ground is the sampler of windows at places on the ground. The ground is one or several maps; each is a lattice of
// pixels. Its row 0 begins at y = 0 and runs down, so rows above y = 0 are negative. Cells of Cell by Cell
// pixels lie on it, the first at pixel (0, 0). Runs says which cells there are.
//
// Random windows have their middle pixel in a cell; all pixels of all cells are equally likely. Otherwise each cell
// has one window, with its corner at the cell's.
type Ground struct {
	Side    int   // of a window, in pixels
	Cell    int   // side of a cell, in pixels
	Samples int64 // random windows of an epoch; 0: one window for each cell
	Runs    []CellRun
	// Scene returns the row that a window is named by: its first scene. It must be a pure function.
	Scene func(Place) int64

	ends []int64 // cells up to and including each run
}

// CellRun is N cells of one row of cells.
type CellRun struct {
	Map  int32 // number of the map
	Y, X int32 // the first cell
	N    int32
}

// Place is where a window begins: its first pixel on a map.
type Place struct {
	Map  int   `json:"map"`
	Y, X int64 // row and column
}

// maxCells bounds the cells of a run and their places, so 2^24 pixels of each fit into an int64.
const maxCells = 1 << 30

// compile checks the sampler, and counts the cells.
func (g *Ground) compile(lf *leafDataset) (height, width int, err error) {
	if lf.Series != nil { // a window has many rows
		return 0, 0, errors.New("ground windows of sequences")
	}
	if err = cmp.Or(g.count(), lf.each(0)); err == nil {
		lf.n = g.windows()
	}
	return g.Side, g.Side, err
}

func (g *Ground) window(*leafDataset, Draw, int, int, *Weights) (Box, bool) {
	panic("shuffle: Plan.Window of windows on the ground, which Plan.Place gives")
}

// count checks the fields, and counts the cells.
func (g *Ground) count() error {
	if !sides(g.Side, g.Cell) || g.Samples < 0 || g.Samples > MaxSamples || g.Scene == nil {
		return fmt.Errorf("ground windows of %d pixels, in cells of %d, %d an epoch", g.Side, g.Cell, g.Samples)
	}
	total := int64(0)
	g.ends = make([]int64, len(g.Runs))
	for i, cellRun := range g.Runs {
		if cellRun.N < 1 || cellRun.Map < 0 || cellRun.N > maxCells || max(cellRun.Y, -cellRun.Y, cellRun.X,
			-cellRun.X) > maxCells {
			return fmt.Errorf("ground windows: run %d of cells is %v", i, cellRun)
		}
		total += int64(cellRun.N)
		g.ends[i] = total
	}
	if total == 0 {
		return errors.New("ground windows: there are no cells")
	}
	return nil
}

// Cells returns the number of cells.
func (g *Ground) Cells() int64 {
	cells := int64(0)
	for _, r := range g.Runs {
		cells += int64(r.N)
	}
	return cells
}

// windows returns the windows of an epoch.
func (g *Ground) windows() int64 {
	if g.Samples > 0 {
		return g.Samples
	}
	return g.ends[len(g.ends)-1]
}

// at returns cell number i, which is below Cells.
func (g *Ground) at(i int64) (r CellRun, x int64) {
	run := sort.Search(len(g.ends), func(run int) bool { return g.ends[run] > i })
	r = g.Runs[run]
	return r, int64(r.X) + int64(r.N) - (g.ends[run] - i)
}

// place returns the window of a draw.
func (g *Ground) place(d *Draw) Place {
	if g.Samples == 0 {
		run, x := g.at(d.Sample)
		return Place{int(run.Map), int64(run.Y) * int64(g.Cell), x * int64(g.Cell)}
	}
	hash := splitmix.Hash(d.Seed, domainGround, d.Epoch, uint64(d.Position))
	cellRun, x := g.at(splitmix.Below64(splitmix.Further(hash, 0), g.ends[len(g.ends)-1]))
	half := int64(g.Side / 2)
	return Place{
		Map: int(cellRun.Map),
		Y:   int64(cellRun.Y)*int64(g.Cell) + splitmix.Below64(splitmix.Further(hash, 1), int64(g.Cell)) - half,
		X:   x*int64(g.Cell) + splitmix.Below64(splitmix.Further(hash, 2), int64(g.Cell)) - half,
	}
}

// Place returns where the window of a draw of a dataset with the sampler Ground begins, also of a view.
func (pl *Plan) Place(d *Draw) Place {
	lf := &pl.leaves[d.Dataset]
	ground := lf.Sampler.Kind.(*Ground)
	first := ground.place(d)
	if d.View == 0 {
		return first
	}
	return lf.Views[d.View-1].Kind.(*Beside).place(ground, first, d)
}

// Beside is the sampler of a view of Ground: a window that shares ground with the first one.
type Beside struct {
	Side    int     // of the window, in pixels of the first one; at most as large
	Overlap float64 // the least part of its area that it shares
}

func (b *Beside) compile(lf *leafDataset) (height, width int, err error) {
	if !sides(b.Side) || !(b.Overlap >= 0 && b.Overlap <= 1) {
		err = fmt.Errorf("a view of %d pixels on the ground, which shares %v", b.Side, b.Overlap)
	}
	return b.Side, b.Side, cmp.Or(err, lf.each(1))
}

func (b *Beside) window(*leafDataset, Draw, int, int, *Weights) (Box, bool) {
	panic("shuffle: Plan.Window of windows on the ground, which Plan.Place gives")
}

// place returns where a view begins: of the places where its rows and columns share enough, all equally likely, the
// first one drawn that shares enough and whose middle pixel lies in a cell. If none does, it lies on the middle of the
// first window. Windows of a grid may reach past the scenes, and so may their views.
func (b *Beside) place(g *Ground, first Place, d *Draw) Place {
	side, half := int64(b.Side), int64(b.Side/2)
	least := max(int64(math.Ceil(b.Overlap*float64(side))), 1) // that rows, and columns, share
	coordinate := func(hash uint64, from int64) int64 {
		return from - side + least + splitmix.Below64(hash, int64(g.Side)+side-2*least+1)
	}
	for try := range overlapTries {
		seed := d.viewSeed(try)
		draw := func(n uint64) uint64 {
			return splitmix.Hash(seed, domainGround, d.Epoch, uint64(d.Position), n)
		}
		place := Place{Map: first.Map, Y: coordinate(draw(3), first.Y), X: coordinate(draw(4), first.X)}
		box := Box{Y: int(place.Y), X: int(place.X), H: b.Side, W: b.Side}
		shared := Overlap(box, Box{Y: int(first.Y), X: int(first.X), H: g.Side, W: g.Side})
		if shared >= b.Overlap && (g.Samples == 0 || g.has(place.Map, place.Y+half, place.X+half)) {
			return place
		}
	}
	off := int64(g.Side-b.Side) / 2
	return Place{Map: first.Map, Y: first.Y + off, X: first.X + off}
}

// has reports whether a pixel of a map lies in a cell.
func (g *Ground) has(number int, y, x int64) bool {
	cell := int64(g.Cell)
	row, column := floorDiv(y, cell), floorDiv(x, cell)
	i := sort.Search(len(g.Runs), func(i int) bool {
		run := &g.Runs[i]
		end := int64(run.X) + int64(run.N)
		return cmp.Or(cmp.Compare(int(run.Map), number), cmp.Compare(int64(run.Y), row),
			cmp.Compare(end, column+1)) >= 0
	})
	if i == len(g.Runs) {
		return false
	}
	run := &g.Runs[i]
	return int(run.Map) == number && int64(run.Y) == row && int64(run.X) <= column
}

// floorDiv returns the greatest whole number that is at most a/b, for b above 0.
func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}
