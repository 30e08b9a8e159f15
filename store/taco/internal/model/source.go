package model

import (
	"context"
	"errors"
	"io/fs"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/source"
)

// Source is what a container is opened from.
type Source struct {
	Opener source.Opener
	URI    string
	// Base is the directory of the source files of an index.
	Base string
	// File is the open file, or nil for a directory. It belongs to the container, which closes it if it cannot be
	// opened. Head has its first bytes.
	File source.Reader
	Head []byte
}

// New returns a container that is being opened.
func New(from Source, form Form) *Container {
	c := &Container{URI: from.URI, From: from, Form: form, IDColumn: ColumnID,
		files: map[string]source.Reader{}, absent: map[string]error{}}
	if from.File != nil {
		c.files[from.URI] = from.File
		c.Object = source.Known{Size: from.File.Size(), ETag: source.ETag(from.File)}
	}
	return c
}

// Failed closes the files of a container that cannot be opened.
func (c *Container) Failed(err error) error {
	return errors.Join(fault.WithFile(err, c.URI), c.closeFiles())
}

// File returns an open object, which stays open until Close, because each level of a directory is read from the same
// few files.
func (c *Container) File(ctx context.Context, uri string) (source.Reader, error) {
	if r := c.files[uri]; r != nil {
		return r, nil
	}
	if err := c.absent[uri]; err != nil {
		return nil, err
	}
	file, err := c.From.Opener.Open(ctx, uri)
	if err == nil {
		c.files[uri] = file
	} else if IsMissing(err) {
		// Only missing files are remembered: a network error may pass, and would otherwise stay until the container is
		// closed.
		c.absent[uri] = err
	}
	return file, err
}

// IsMissing reports whether an error says that a file does not exist.
func IsMissing(err error) bool {
	return fault.KindOf(err) == fault.NotFound || errors.Is(err, fs.ErrNotExist)
}

// Hold makes r the reader of the container's own file, which has more of it in memory.
func (c *Container) Hold(r source.Reader) { c.files[c.URI] = r }

func (c *Container) closeFiles() error {
	var errs []error
	for _, r := range c.files {
		errs = append(errs, r.Close())
	}
	c.files = map[string]source.Reader{}
	return errors.Join(errs...)
}
