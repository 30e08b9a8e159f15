package server

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/chaski-eo/chaski/chunk"
	chaskiv1 "github.com/chaski-eo/chaski/proto/chaski/v1"
	"github.com/chaski-eo/chaski/rumi"
	"github.com/chaski-eo/chaski/tiff"
)

// rumiHead answers with the bytes before the frames of a rumi file, and its header blob.
func (q *asking) rumiHead(m *chaskiv1.RumiHeadQuestion) error {
	l, err := rumiLayout(m)
	if err != nil {
		return err
	}
	data, err := q.whole(m.GetCounts())
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
	head, blob, err := rumi.Head(counts, l)
	if err != nil {
		return err
	}
	return q.message(&chaskiv1.Blobs{Blobs: [][]byte{head, blob}})
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
	t, epsg := m.GetTransform(), m.GetEpsg()
	if len(t) == 0 && epsg == 0 {
		return l, nil
	}
	if len(t) == 0 || epsg == 0 {
		return l, fmt.Errorf("transform and crs belong together")
	}
	if len(t) != 6 {
		return l, fmt.Errorf("transform is %v: it must be (a, b, c, d, e, f)", t)
	}
	for _, v := range t {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return l, fmt.Errorf("transform is %v: its numbers must be finite", t)
		}
	}
	least := uint32(1)
	if l.Generation == 2 {
		least = 1024
	}
	if epsg < least || epsg > 32766 { // GeoTIFF leaves 32767 for CRSs that the file itself defines
		return l, fmt.Errorf("crs is EPSG:%d: files of generation %d take codes of %d to 32766", epsg, l.Generation,
			least)
	}
	l.PixelIsPoint = m.GetPixelIsPoint()
	l.Geo = &tiff.Geo{
		EPSG: int(epsg), HasTransform: true, Transform: [6]float64{t[2], t[0], t[1], t[5], t[3], t[4]},
	}
	return l, nil
}
