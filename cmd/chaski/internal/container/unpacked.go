package container

import (
	"sync"

	"github.com/chaski-eo/chaski/internal/durable"
)

// unpacked is a folder beside OUT for shards that are decompressed, which is made when it is needed.
type unpacked struct {
	out  string
	once sync.Once
	dir  *durable.Folder
	err  error
}

// folder implements taco.Options.Unpack.
func (u *unpacked) folder() (string, error) {
	u.once.Do(func() { u.dir, u.err = durable.NewFolder(u.out) })
	if u.err != nil {
		return "", u.err
	}
	return u.dir.Path, nil
}

func (u *unpacked) remove() error {
	if u.dir == nil {
		return nil
	}
	return u.dir.Remove()
}
