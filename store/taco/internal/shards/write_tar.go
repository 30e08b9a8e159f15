package shards

import (
	"archive/tar"
	"bytes"
	"fmt"
	"time"

	"github.com/chaski-eo/chaski/fault"
)

// Tars writes tar files of WebDataset. A shard is in memory until it is complete, as in MDS.
type Tars struct {
	out    Output
	shard  bytes.Buffer
	sample bytes.Buffer
	done   int // shards
}

// NewTars returns a writer of tar files.
func NewTars(o Output) *Tars { return &Tars{out: o} }

// Member is a file of a sample in a tar file, without the key: "mask.png".
type Member struct {
	Ext   string
	Bytes []byte
}

// endBlocks end a tar file.
var endBlocks [2 * TarBlock]byte

// Add adds a sample. Its key has no dots.
func (w *Tars) Add(key string, members []Member) error {
	w.sample.Reset()
	out := tar.NewWriter(&w.sample)
	for _, member := range members {
		// The epoch as the time, and no owner: the same samples give the same bytes.
		header := &tar.Header{Typeflag: tar.TypeReg, Name: key + "." + member.Ext, Size: int64(len(member.Bytes)),
			Mode:    0o644,
			ModTime: time.Unix(0, 0)}
		if err := out.WriteHeader(header); err != nil {
			return fault.Wrap(fault.Unsupported, fmt.Sprintf("member %q", header.Name), fault.NoOffset, err)
		}
		if _, err := out.Write(member.Bytes); err != nil {
			return err
		}
	}
	if err := out.Flush(); err != nil {
		return err
	}
	if w.shard.Len() > 0 && int64(w.shard.Len()+w.sample.Len()+len(endBlocks)) > w.out.Bytes {
		if err := w.flush(); err != nil {
			return err
		}
	}
	_, err := w.sample.WriteTo(&w.shard)
	return err
}

func (w *Tars) flush() error {
	err := w.out.Put(fmt.Sprintf("shard-%06d.tar", w.done), w.shard.Bytes(), endBlocks[:])
	w.shard.Reset()
	w.done++
	return err
}

// Close writes the last shard.
func (w *Tars) Close() error {
	if w.shard.Len() == 0 {
		return nil
	}
	return w.flush()
}
