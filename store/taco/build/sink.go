package build

import (
	"context"
)

// sink takes the files of a container, into one file or a folder.
type sink interface {
	// put writes a file, and returns where a container that is one file has its bytes.
	put(ctx context.Context, name string, l *loaded) (span, error)
}

// entry is a table or a description, as a file of a container or an index has it.
type entry struct {
	name string
	data []byte
}

// putAll writes entries below a folder, "" for the container itself.
func putAll(ctx context.Context, t sink, folder string, entries []entry) (places []span, err error) {
	for _, e := range entries {
		place, err := t.put(ctx, folder+e.name, inMemory(e.data))
		if err != nil {
			return nil, err
		}
		places = append(places, place)
	}
	return places, nil
}
