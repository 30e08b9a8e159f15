package openers

import (
	"context"

	"github.com/chaski-eo/chaski/source"
)

// BelowNotKept is Below, but keeps no file open.
func BelowNotKept(o source.Opener, roots []string) source.Opener {
	b := Below(o, roots).(*below)
	b.files.Keep = -1
	return b
}

// TarMembers returns the offsets and sizes of the members of a tar.
func TarMembers(ctx context.Context, r source.Reader) (map[string][2]int64, error) {
	directory, err := readTar(ctx, r)
	if err != nil {
		return nil, err
	}
	spans := map[string][2]int64{}
	for name, member := range directory.members {
		spans[name] = [2]int64{member.data.Load(), member.Size}
	}
	return spans, nil
}
