package hdf5

import (
	"context"
	"slices"

	"github.com/chaski-eo/chaski/source"
)

// Strings returns the strings of elements, whose bytes are data, from the file of the dataset.
func (d *Dataset) Strings(ctx context.Context, r source.Reader, data []byte) ([]string, error) {
	w, size := d.file.walk(ctx, r), d.Type.Size
	list := make([]string, 0, len(data)/size)
	for element := range slices.Chunk(data, size) {
		if d.Type.Class == String {
			list = append(list, d.Type.String(element))
			continue
		}
		b, _, err := w.varying(element, 1)
		if err != nil {
			return nil, err
		}
		list = append(list, cString(b))
	}
	return list, nil
}
