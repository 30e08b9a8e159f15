package tiledb

import "github.com/chaski-eo/chaski/fault"

// DryRun counts the reads of tiles that a Reader would make. It is a Reader that reads footers, R-trees and lists of
// offsets, but no tiles. Like a Reader it keeps state from box to box, and is not safe for concurrent use.
type DryRun struct {
	r           *Reader
	note        func(file string, off, n int64) // called for each read
	exact       bool                            // see run
	tile        uint64                          // size of the largest tile
	read        uint64                          // peak of stored bytes held
	decodedPeak uint64                          // peak of decoded bytes held of sparse fragments
}

// NewDryRun returns a dry run of a new Reader.
func (a *Array) NewDryRun() *DryRun {
	dry := &DryRun{r: a.NewReader()}
	dry.r.dry = dry
	return dry
}

// Held returns the peak memory of the Reader in bytes: one decoded tile, the bytes read ahead, and
// the kept tiles of sparse fragments.
func (p *DryRun) Held() int64 { return int64(p.tile + p.read + p.decodedPeak) }

// decoded notes that a tile of n bytes would have been decoded. It does nothing for a Reader, whose DryRun is nil.
func (p *DryRun) decoded(n uint64, h *readAhead) {
	if p == nil {
		return
	}
	stored, kept := h.memory()
	p.tile, p.read, p.decodedPeak = max(p.tile, n), max(p.read, stored), max(p.decodedPeak, kept)
}

// run calls do, which reads by the dry run's reader, with a function that is called for every range of a file that a
// reader would read. exact is false if a sparse fragment is involved whose cells in the box are known only after
// reading its coordinates.
func (p *DryRun) run(read func(file string, off, n int64), do func() error) (exact bool, err error) {
	p.note, p.exact = read, true
	err = do()
	return p.exact && err == nil, fault.WithFile(err, p.r.a.uri)
}
