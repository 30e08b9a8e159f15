package arrays

import (
	"context"
	"strings"

	"github.com/chaski-eo/chaski/internal/magic"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/store"
)

// Kind is a kind of stores that are groups of arrays, as the package of a format gives it to store.Register.
type Kind struct {
	Noun  string
	Files *magic.Format
	// Looks is Is of a store.Kind, and OpenNode opens the array or the group at a URI.
	Looks    func(ctx context.Context, o source.Opener, p source.Path) (bool, error)
	OpenNode func(ctx context.Context, o source.Opener, uri string, opt Options) (*Node, error)
}

// String implements store.Kind.
func (k *Kind) String() string { return k.Noun }

// Is implements store.Kind.
func (k *Kind) Is(ctx context.Context, o source.Opener, p source.Path) (bool, error) {
	return k.Looks(ctx, o, p)
}

// Format implements store.Files.
func (k *Kind) Format() *magic.Format { return k.Files }

// Named implements store.Named: it reports whether the name of a file, or a part of it if stores are directories, has
// the extension of the format. Only such paths are probed for metadata, because probing costs requests.
func (k *Kind) Named(p source.Path) bool {
	name, _, _ := source.Split(p.Name)
	for part := range strings.SplitSeq(name, "/") {
		if k.Files.Folder && magic.Named(part) == k.Files {
			return true
		}
	}
	return magic.Named(name) == k.Files
}

// Open implements store.Arrays.
func (k *Kind) Open(ctx context.Context, o source.Opener, uri string, opt store.Options) (store.Group, error) {
	node, err := k.OpenNode(ctx, o, uri,
		Options{MaxChunk: opt.MaxChunk, MaxIndexes: opt.MaxIndexes, MaxMeta: opt.MaxMeta})
	if err != nil {
		return nil, err
	}
	node.kind = k.Files.Name
	return node, nil
}

// Verify implements store.Verifier.
func (k *Kind) Verify(ctx context.Context, c *store.Check, path string) error {
	node, err := k.OpenNode(ctx, c.Opener, path, Options{MaxChunk: int64(c.MaxChunk)})
	if err != nil {
		return err
	}
	return node.check(ctx, c, path)
}
