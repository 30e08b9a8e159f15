package hdf5

import (
	"context"
	"slices"
	"strings"

	"github.com/chaski-eo/chaski/internal/meter"
	"github.com/chaski-eo/chaski/source"
)

// Strings returns the strings of elements, whose bytes are data, from the file of the dataset. Of elements that are
// lists of numbers it returns the bytes of each list.
func (d *Dataset) Strings(ctx context.Context, r source.Reader, data []byte) ([]string, error) {
	file, t := *d.file, d.Type
	file.meter = meter.New() // they may be read again
	w := file.walk(ctx, r)
	if t.Class == String {
		list := make([]string, 0, len(data)/t.Size)
		for element := range slices.Chunk(data, t.Size) {
			list = append(list, t.String(element))
		}
		return list, nil
	}
	list, err := w.later(t, data)
	if err == nil {
		err = w.resolve()
	}
	if !t.Text {
		return list, err
	}
	return cStrings(list), err
}

// cStrings returns the texts before their first zeros.
func cStrings(texts []string) []string {
	list := make([]string, len(texts))
	for i, text := range texts {
		list[i], _, _ = strings.Cut(text, "\x00")
	}
	return list
}
