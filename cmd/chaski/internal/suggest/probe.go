package suggest

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/npy"
	"github.com/chaski-eo/chaski/format/vector"
	"github.com/chaski-eo/chaski/internal/magic"
	"github.com/chaski-eo/chaski/loader"
	"github.com/chaski-eo/chaski/loader/raster"
	"github.com/chaski-eo/chaski/loader/survey"
)

const (
	maxValues = 64       // of a mask, or colours
	maxProbe  = 64 << 20 // bytes of pixels that are decoded of a file
	maxHeads  = 20_000   // headers that are read
)

// head is what the header of a file says, and some of its pixels.
type head struct {
	format                      *magic.Format
	bands, height, width, times int
	dtype                       string
	alpha                       bool
	dims                        string  // of an array
	Arrays                      []array // of a store
	wrong                       error

	values  []int64   // the different ones of one band, if few
	colours [][]int64 // the different ones of all bands, if few
}

// array is an array of a store.
type array struct {
	Path  string   `json:"path"`
	Shape []int    `json:"shape"`
	DType string   `json:"dtype"`
	Axes  []string `json:"axes"` // that the file says
}

// prober reads headers, and keeps them.
type prober struct {
	ctx   context.Context
	root  string
	heads map[string]*head
	// values is how many values of tables are kept.
	values int
	paths  map[string]*file
	o      loader.Options
}

func (p *prober) name(rel string) string { return filepath.Join(p.root, filepath.FromSlash(rel)) }

// header returns the header of a file.
func (p *prober) header(rel string) *head {
	if h, ok := p.heads[rel]; ok {
		return h
	}
	h := &head{format: magic.Named(rel)}
	p.heads[rel] = h
	switch {
	case len(p.heads) > maxHeads:
	case h.format == magic.NPZ:
		h.wrong = h.npz(p.name(rel))
	case h.format == magic.NPY:
		h.wrong = h.npy(p.name(rel))
	default:
		description, err := survey.Describe(p.ctx, p.name(rel), nil, p.o)
		if h.wrong = err; err != nil {
			return h
		}
		if info, ok := description.(*survey.FileInfo); ok && info.Raster != nil {
			r := info.Raster
			h.bands, h.height, h.width, h.times = r.Shape[0], r.Shape[1], r.Shape[2], r.Times
			h.dtype = r.DType.String()
			h.alpha = r.Mask != nil && r.Mask.Kind == "alpha" && h.format.Class == magic.Raster && h.bands == 4
		} else if data, err := json.Marshal(description); err == nil {
			h.wrong = json.Unmarshal(data, h)
		}
	}
	return h
}

// readable reports whether a group has images or arrays.
func (h *head) readable() bool { return h.wrong == nil && (h.bands > 0 || len(h.Arrays) > 0) }

// npz lists the arrays of a .npz file.
func (h *head) npz(name string) error {
	files, err := zip.OpenReader(name)
	if err != nil {
		return err
	}
	defer files.Close()
	for _, member := range files.File[:min(len(files.File), 256)] {
		file, err := member.Open()
		if err != nil {
			return err
		}
		a, err := parse(file)
		_ = file.Close() // it was only read
		if err == nil {
			name := strings.TrimSuffix(member.Name, ".npy")
			h.Arrays = append(h.Arrays, array{Path: name, Shape: a.Shape, DType: a.Descr})
		}
	}
	return nil
}

// npy reads the header of a NumPy file.
func (h *head) npy(name string) error {
	file, err := os.Open(name)
	if err != nil {
		return err
	}
	defer file.Close()
	a, err := parse(file)
	if h.dtype = a.Descr; err == nil {
		h.shape(a.Shape)
	}
	return err
}

// parse reads the header of an array from its start.
func parse(r io.Reader) (npy.Array, error) {
	var read []byte
	return npy.Parse(func(off int64, n int) ([]byte, error) {
		if need := int(off) + n - len(read); need > 0 {
			if need > 1<<17 {
				return nil, fault.New(fault.Limit, "header", "over %d bytes", 1<<17)
			}
			tail, err := io.ReadAll(io.LimitReader(r, int64(need)))
			if read = append(read, tail...); err != nil || len(tail) < need {
				return nil, io.ErrUnexpectedEOF
			}
		}
		return read[off : int(off)+n], nil
	})
}

// shape guesses the axes of an array: bands are fewer than rows and columns, which are often equal.
func (h *head) shape(s []int) {
	small := func(n, y, x int) bool { return n*2 <= min(y, x) }
	switch len(s) {
	case 2:
		h.dims, h.bands, h.height, h.width = "y x", 1, s[0], s[1]
	case 3:
		h.dims, h.bands, h.height, h.width = "b y x", s[0], s[1], s[2]
		if small(s[2], s[0], s[1]) {
			h.dims, h.height, h.width, h.bands = "y x b", s[0], s[1], s[2]
		}
	case 4:
		h.dims, h.times, h.bands, h.height, h.width = "t b y x", s[0], s[1], s[2], s[3]
		switch {
		case s[1] == s[2] && s[3] != s[2]:
			h.dims, h.height, h.width, h.bands = "t y x b", s[1], s[2], s[3]
		case s[0] == s[1] && s[2] != s[3] || small(max(s[2], s[3]), s[0], s[1]):
			h.dims, h.height, h.width, h.bands, h.times = "y x b t", s[0], s[1], s[2], s[3]
		}
	}
}

// look is a short text of a header, by which folders of other kinds of files are told apart.
func (p *prober) look(f *file) string {
	h := p.header(f.path)
	return fmt.Sprint(h.format.Name, min(h.bands, 5), h.dtype, h.times > 0)
}

// integer reports whether samples are whole numbers.
func (h *head) integer() bool {
	return strings.Contains(h.dtype, "int") || strings.HasPrefix(h.dtype, "bool") || len(h.dtype) == 3 &&
		strings.Contains("iub", h.dtype[1:2])
}

// count finds the different values or colours of some files of a group.
func (p *prober) count(g *group) {
	h := g.head
	if !h.integer() || h.times > 0 || h.bands > 3 || h.format == magic.JPEG {
		return
	}
	values, colours := map[int64]bool{}, map[[3]int64]bool{}
	for i := 0; i < len(g.files); i += max(1, len(g.files)/8) {
		o := raster.ReadOptions{MaxBytes: maxProbe, Options: p.o}
		if h.height > 2048 {
			o.Y = raster.Selection{Slice: true, Stop: 2048}
		}
		if h.width > 2048 {
			o.X = raster.Selection{Slice: true, Stop: 2048}
		}
		a, err := raster.Read(p.ctx, []string{p.name(g.files[i].path)}, o)
		if err != nil || len(a.Shape) != 3 {
			return
		}
		// A NumPy file of axes y x b is read as b y x, unless it is a picture.
		pixels, step, next := a.Shape[1]*a.Shape[2], a.Shape[1]*a.Shape[2], 1
		if h.dims == "y x b" && a.Shape[0] == h.height && a.Shape[2] == h.bands {
			pixels, step, next = a.Shape[0]*a.Shape[1], 1, h.bands
		}
		for pixel := range pixels {
			var colour [3]int64
			for b := range h.bands {
				colour[b] = sample(a, b*step+pixel*next)
			}
			if colours[colour] = true; len(colours) > maxValues {
				return
			}
			values[colour[0]] = true
		}
	}
	for c := range colours {
		h.colours = append(h.colours, slices.Clone(c[:h.bands]))
	}
	slices.SortFunc(h.colours, slices.Compare)
	for v := range values {
		h.values = append(h.values, v)
	}
	slices.Sort(h.values)
}

// sample returns a sample as a whole number.
func sample(a *raster.Array, i int) int64 {
	size := a.DType.Size()
	var u uint64
	for k := range size {
		u |= uint64(a.Data[i*size+k]) << (8 * k)
	}
	if strings.HasPrefix(a.DType.String(), "int") {
		return int64(u<<(64-8*size)) >> (64 - 8*size)
	}
	return int64(min(u, math.MaxInt64))
}

// sides returns the least and the most rows and columns of the files of a group.
func (p *prober) sides(g *group) (least, most [2]int) {
	least = [2]int{math.MaxInt, math.MaxInt}
	for i := 0; i < len(g.files); i += max(1, len(g.files)/64) {
		if h := p.header(g.files[i].path); h.height > 0 {
			least = [2]int{min(least[0], h.height), min(least[1], h.width)}
			most = [2]int{max(most[0], h.height), max(most[1], h.width)}
		}
	}
	return least, most
}

// steps returns the most steps of time in the files of a group, or of an array in them, and whether they differ.
func (p *prober) steps(g *group, name string) (most int, differ bool) {
	least := math.MaxInt
	for _, f := range g.files[:min(len(g.files), 4000)] {
		h := *p.header(f.path)
		for _, a := range h.Arrays {
			if a.Path == name {
				h.shape(a.Shape)
			}
		}
		most, least = max(most, h.times), min(least, h.times)
	}
	return most, most != least
}

// blank reports whether a file begins with nothing but spaces.
func blank(name string) bool {
	file, err := os.Open(name)
	if err != nil {
		return true
	}
	defer file.Close()
	begin, err := io.ReadAll(io.LimitReader(file, 1<<16))
	return err != nil || len(bytes.TrimSpace(begin)) == 0
}

// shapes counts the images that a file of labels names, and the shapes on them, as the readers of labels find them.
// Without images it is the file of one.
func (p *prober) shapes(rel string, images []*file) (named, shapes int) {
	if st, err := os.Stat(p.name(rel)); err != nil || st.Size() > maxTable || blank(p.name(rel)) {
		return 0, 0
	}
	options := vector.Options{OneImage: images == nil, Boxes: true, Class: true, Words: true}
	layer, err := vector.Open(p.ctx, p.o.Opener, p.name(rel), options)
	if err != nil {
		return 0, 0
	}
	defer layer.Close() //nolint:errcheck // it was only read
	if images == nil {
		return 1, layer.Len()
	}
	fit, err := layer.Own(func(yield func(vector.Sample, error) bool) {
		for _, f := range images {
			if !yield(vector.Sample{URI: f.path}, nil) {
				return
			}
		}
	})
	if err != nil {
		return 0, 0
	}
	return fit.Named, fit.Shapes
}
