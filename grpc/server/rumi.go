package server

import (
	"cmp"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"slices"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/internal/budget"
	"github.com/chaski-eo/chaski/internal/ops/convert"
	"github.com/chaski-eo/chaski/loader/survey"
	chaskiv1 "github.com/chaski-eo/chaski/proto/chaski/v1"
	"github.com/chaski-eo/chaski/rumi"
	"github.com/chaski-eo/chaski/store/catalog"
	"github.com/chaski-eo/chaski/tiff"
)

// rumiHead answers with the bytes before the frames of a rumi file, its header blob, and the bytes behind the frames.
func (q *asking) rumiHead(m *chaskiv1.RumiHeadQuestion) error {
	layout, err := rumiLayout(m)
	if err != nil {
		return err
	}
	data, err := q.readAll(m.GetCounts(), maxSizes, sizesCost)
	if err != nil {
		return err
	}
	if len(data)%8 != 0 {
		return fmt.Errorf("%d bytes of frame sizes: a size has 8", len(data))
	}
	counts := make([]int64, len(data)/8)
	for i := range counts {
		counts[i] = int64(min(binary.LittleEndian.Uint64(data[8*i:]), math.MaxInt64))
	}
	head, blob, err := rumi.Head(counts, layout)
	if err != nil {
		return err
	}
	tail, err := layout.Tail()
	if err != nil {
		return err
	}
	return q.message(&chaskiv1.Blobs{Blobs: [][]byte{head, blob, tail}})
}

// rumiFrames answers with the frames of a rumi file.
func (q *asking) rumiFrames(m *chaskiv1.RumiFramesQuestion) error {
	layout, err := rumiLayout(m.GetHead())
	if err != nil {
		return err
	}
	// It is checked first, since otherwise minutes of compression would come before the error.
	if _, err := layout.Tail(); err != nil {
		return err
	}
	options := convert.Options{
		Graph: m.GetGraph(), Level: int(min(cmp.Or(m.GetLevel(), rumiLevel), math.MaxInt32)),
		Geozl: int(min(m.GetGeozl(), math.MaxInt32)), MaxCost: m.GetMaxCost(), Workers: q.view.options.Workers,
	}
	return convert.Frames(q.ctx, layout, q.in, options, func(frame []byte) error {
		_, err := q.out.Write(binary.LittleEndian.AppendUint64(nil, uint64(len(frame))))
		if err == nil {
			_, err = q.out.Write(frame)
		}
		return err
	})
}

// rumiLevel is the default zstd level; `chaski convert` has the same.
const rumiLevel = 13

// rumiCube sets what only files of generation 3 have.
func rumiCube(l *rumi.Layout, m *chaskiv1.RumiHeadQuestion) (err error) {
	l.Times = int(min(max(m.GetTimes(), 1), math.MaxInt32))
	if l.Unit, err = rumi.ParseUnit(cmp.Or(m.GetUnit(), "tile"), l.Shape[0], l.Times); err != nil {
		return err
	}
	l.Trailer = &rumi.Trailer{Bands: m.GetBands()}
	l.Trailer.Kind, l.Trailer.Times, err = rumi.ParseTimes(m.GetTime())
	return err
}

// rumiLayout returns the layout of a question.
func rumiLayout(m *chaskiv1.RumiHeadQuestion) (l rumi.Layout, err error) {
	if len(m.GetShape()) != 3 || len(m.GetTile()) != 2 {
		return l, fmt.Errorf("shape is %v and tile is %v: they must have 3 and 2 numbers", m.GetShape(), m.GetTile())
	}
	for i, n := range m.GetShape() {
		l.Shape[i] = int(n)
	}
	l.TileH, l.TileW = int(m.GetTile()[0]), int(m.GetTile()[1])
	if l.DType, err = chunk.ParseDType(m.GetDtype()); err != nil {
		return l, err
	}
	l.Generation, l.Cells = int(m.GetGeneration()), m.GetCells()
	if l.Generation == 3 {
		if err := rumiCube(&l, m); err != nil {
			return l, err
		}
	}
	transform, epsg := m.GetTransform(), m.GetEpsg()
	if len(transform) == 0 && epsg == 0 {
		return l, nil
	}
	if len(transform) == 0 || epsg == 0 {
		return l, fmt.Errorf("transform and crs belong together")
	}
	if len(transform) != 6 {
		return l, fmt.Errorf("transform is %v: it must be (a, b, c, d, e, f)", transform)
	}
	for _, v := range transform {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return l, fmt.Errorf("transform is %v: its numbers must be finite", transform)
		}
	}
	least := uint32(1)
	if l.Generation > 1 {
		least = 1024
	}
	if epsg < least || epsg > 32766 { // GeoTIFF leaves 32767 for CRSs that the file itself defines
		return l, fmt.Errorf("crs is EPSG:%d: files of generation %d take codes of %d to 32766", epsg, l.Generation,
			least)
	}
	l.PixelIsPoint = m.GetPixelIsPoint()
	l.Geo = &tiff.Geo{
		EPSG: int(epsg), HasTransform: true, Transform: [6]float64{transform[2], transform[0], transform[1],
			transform[5], transform[3], transform[4]},
	}
	return l, nil
}

// rumiHeader is the JSON of the answer about a header blob or a file. The fields after Order are set for files only.
type rumiHeader struct {
	Shape      []int       `json:"shape"` // bands, height, width, with the steps of time in front if there are several
	DType      chunk.DType `json:"dtype"`
	Tile       [2]int      `json:"tile"`         // height and width of a tile, in pixels
	Generation int         `json:"generation"`   // of the format, 1 to 3
	Cells      bool        `json:"cells"`        // a frame holds all bands and steps of a place in the grid, not one
	Times      int         `json:"time_count"`   // steps of time
	Frame      string      `json:"frame_layout"` // axes of a frame, such as "h w b"
	Order      []string    `json:"index_order"`  // axes along which a place in the grid has several frames
	Bands      []string    `json:"bands"`
	Kind       *string     `json:"time_kind"` // "instant" or "interval"
	// Time is a date or a time in UTC for each step, or a pair of them.
	Time         []any     `json:"time"`
	Transform    []float64 `json:"transform"`      // affine coefficients (a, b, c, d, e, f)
	EPSG         *int      `json:"crs"`            // EPSG code
	PixelIsPoint *bool     `json:"pixel_is_point"` // transform refers to the centres of pixels
}

// rumiBlob answers with the content of a header blob.
func (q *asking) rumiBlob(b []byte) error {
	b, err := q.readAll(b, maxSizes, sizesCost)
	if err != nil {
		return err
	}
	return q.rumiSaid(b, rumiHeader{})
}

// rumiFile answers with the content of a rumi file without its pixels.
func (q *asking) rumiFile(path string) error {
	options := q.view.options
	_, meta, err := catalog.OpenAsset(q.ctx, options.Opener, path, options.MaxChunkBytes)
	if err != nil {
		return err
	}
	described, err := survey.Describe(q.ctx, path, nil, options)
	if err != nil {
		return err
	}
	fileInfo, ok := described.(*survey.FileInfo)
	if !ok || fileInfo.Rumi == nil {
		return fault.WithFile(fault.New(fault.Unsupported, "header", fault.NoOffset,
			"not a rumi file, but another TIFF"), path)
	}
	header := rumiHeader{Bands: fileInfo.TIFF.BandNames, Time: []any{}, PixelIsPoint: &fileInfo.Rumi.PixelIsPoint}
	if fileInfo.Rumi.TimeKind != "" {
		header.Kind = &fileInfo.Rumi.TimeKind
	}
	if fileInfo.TIFF.EPSG > 0 {
		header.EPSG = &fileInfo.TIFF.EPSG
	}
	each := 1
	if fileInfo.Rumi.TimeKind == rumi.Interval.String() {
		each = 2
	}
	for step := range slices.Chunk(fileInfo.Rumi.Times, each) {
		if each == 1 {
			header.Time = append(header.Time, step[0])
		} else {
			header.Time = append(header.Time, step)
		}
	}
	if transform := fileInfo.TIFF.Transform; transform != nil { // of corners
		c, y := transform[0], transform[3]
		if fileInfo.Rumi.PixelIsPoint {
			c, y = c+(transform[1]+transform[2])/2, y+(transform[4]+transform[5])/2
		}
		header.Transform = []float64{transform[1], transform[2], c, transform[4], transform[5], y}
	}
	return q.rumiSaid(meta.Blob, header)
}

// rumiSaid answers with the content of a header blob, and with the facts about its file in said.
func (q *asking) rumiSaid(b []byte, said rumiHeader) error {
	header, err := rumi.ParseLimit(b, math.MaxInt)
	if err != nil {
		return err
	}
	// A blob whose frames are of one size has no bytes for each, and the answer has 16.
	if err := budget.Grow(q.ctx, 64*int64(len(header.Frames()))); err != nil {
		return err
	}
	said.Shape, said.DType, said.Tile = header.Shape[:], header.DType, [2]int{header.TileH, header.TileW}
	said.Generation, said.Cells, said.Times = header.Generation, header.Cells, header.Times
	said.Frame, said.Order = header.Unit.Axes(header.Shape[0], header.Times), append([]string{}, header.Order()...)
	if header.Times > 1 {
		said.Shape = append([]int{header.Times}, said.Shape...)
	}
	text, err := json.Marshal(said)
	if err != nil {
		return err
	}
	var offsets, counts []byte
	for _, frame := range header.Frames() {
		offsets = binary.LittleEndian.AppendUint64(offsets, uint64(frame.Off))
		counts = binary.LittleEndian.AppendUint64(counts, uint64(frame.Len))
	}
	return q.message(&chaskiv1.Blobs{Blobs: [][]byte{text, offsets, counts, b}})
}
