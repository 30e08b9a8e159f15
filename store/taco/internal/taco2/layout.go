package taco2

import (
	"encoding/binary"

	"github.com/chaski-eo/chaski/store/taco/internal/model"
)

// PutPlaces writes the content of TACO_HEADER: offset and size of the table of each level, then of COLLECTION.json.
func PutPlaces(b []byte, places []model.Span) {
	clear(b)
	b[0] = byte(len(places))
	for i, p := range places {
		binary.LittleEndian.PutUint64(b[4+16*i:], uint64(p.Off))
		binary.LittleEndian.PutUint64(b[12+16*i:], uint64(p.Size))
	}
}
