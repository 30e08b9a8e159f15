package build

import "bufio"

// patched is a file that is written from its beginning on, through a buffer, and at some places again.
type patched struct {
	file    *counted
	out     *bufio.Writer
	held    holder // nil for a file that can be written at any place until it is closed
	patches []patch
}

// patch is a few bytes of the file whose values are known only after later bytes are written.
type patch struct {
	at    int64
	bytes []byte
}

// holder is an archiveFile that must know before some bytes are written that they will be written again, as soon as
// possible: it keeps them in memory until then.
type holder interface {
	Hold(at, n int64)
}

func newPatched(f archiveFile) patched {
	p := patched{file: &counted{archiveFile: f}}
	p.out = bufio.NewWriterSize(p.file, bufferBytes)
	p.held, _ = f.(holder)
	return p
}

// at returns where the next byte will be in the file.
func (p *patched) at() int64 { return p.file.n + int64(p.out.Buffered()) }

// hold announces a patch of n bytes, before the bytes that it replaces are written.
func (p *patched) hold(at, n int64) {
	if p.held != nil {
		p.held.Hold(at, n)
	}
}

// patch replaces bytes that hold has announced: at once if the file holds them, else in finish, as a file on a disk is
// best written without a seek between.
func (p *patched) patch(at int64, b []byte) error {
	if p.held == nil {
		p.patches = append(p.patches, patch{at, b})
		return nil
	}
	if err := p.out.Flush(); err != nil {
		return err
	}
	_, err := p.file.WriteAt(b, at)
	return err
}

// finish writes the buffer and the patches.
func (p *patched) finish() error {
	if err := p.out.Flush(); err != nil {
		return err
	}
	for _, patch := range p.patches {
		if _, err := p.file.WriteAt(patch.bytes, patch.at); err != nil {
			return err
		}
	}
	return nil
}
