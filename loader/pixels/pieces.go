package pixels

import (
	"bufio"
	"context"
	"io"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/format/chunk/runs"
	"github.com/chaski-eo/chaski/loader/resources"
	"github.com/chaski-eo/chaski/source"
)

// Chunks over Options.MaxChunkBytes are decoded in pieces of rows, if they can be (chunk.Index.InPieces): stored
// bytes are read in parts of MaxRun, and decoded rows go to the sink piece by piece, so memory does not
// depend on the size of the chunk. Nothing is kept between windows: every window decodes its chunk from the
// first row on.

// rows decodes chunk i down to the last row of the box, and puts the pieces that meet the box into the sink.
func (w *walk) rows(ctx context.Context, i int) error {
	x, pieces := w.x, w.pieces
	top, bottom := w.rowsOf(i)
	read, rows, err := w.openRows(ctx, w.file, x, i)
	if err != nil {
		return err
	}
	defer read.close(rows)
	for line, height := 0, pieces.ChunkH; line < bottom; line += height {
		if err := ctx.Err(); err != nil {
			return err
		}
		count := min(height, bottom-line)
		if line+count <= top {
			if err := rows.Skip(count); err != nil {
				return read.fault(err)
			}
			continue
		}
		piece := x.Piece(pieces, i, line)
		samples := w.Samples[:pieces.DecodedBytes(piece)]
		if err := rows.Next(samples[:count*rows.Bytes()]); err != nil {
			return read.fault(err)
		}
		w.Clock.Lap(resources.StagePredictor)
		w.sink.Put(pieces, piece, samples)
		w.Clock.Lap(resources.StageScatter)
	}
	w.Clock.Decoded(bottom * rows.Bytes())
	return nil
}

// Check decodes all rows of chunk i of x from file f, also those below the image, and keeps none. The chunk
// must be one that is decoded in pieces.
func (r *Reader) Check(ctx context.Context, f source.Reader, x *chunk.Index, i int) error {
	read, rows, err := r.openRows(ctx, f, x, i)
	if err != nil {
		return err
	}
	defer read.close(rows)
	for step := max(1, pieceOfCheck/rows.Bytes()); rows.Left() > 0; {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := rows.Skip(min(step, rows.Left())); err != nil {
			return read.fault(err)
		}
	}
	return nil
}

// pieceOfCheck is how many bytes Check decodes before it looks whether it is to stop: some milliseconds of
// work.
const pieceOfCheck = 4 << 20

// parts reads the stored bytes of a chunk for a bufio.Reader, whose buffer says how many at a time.
type parts struct {
	ctx  context.Context
	r    *Reader
	f    source.Reader
	rest chunk.Range // bytes that are not read yet
	off  int64       // where the chunk begins
	open bool        // the reader decodes: see Reader.begin
	err  error       // why a read failed
}

// openRows begins to decode the rows of chunk i of x in file f.
func (r *Reader) openRows(ctx context.Context, f source.Reader, x *chunk.Index, i int) (*parts, *chunk.Rows, error) {
	place := x.Ranges[i]
	if place.Len > 0 {
		if err := present(f, runs.Run{Off: place.Off, Len: place.Len, Chunks: []int{i}}); err != nil {
			return nil, nil, err
		}
	}
	opened := &parts{ctx: ctx, r: r, f: f, rest: place, off: place.Off}
	if r.parts == nil {
		r.parts = bufio.NewReaderSize(nil, MaxRun)
	}
	r.parts.Reset(opened)
	r.Clock.Lap(resources.StageOther)
	rows, err := r.Decoder.Rows(r.parts, x, i, min(r.maxChunk, maxWindow))
	if err != nil {
		opened.close(nil)
		return nil, nil, opened.fault(err)
	}
	return opened, rows, nil
}

// close ends the decoding that openRows began.
func (p *parts) close(rows *chunk.Rows) {
	if rows != nil {
		rows.Close()
	}
	p.r.parts.Reset(nil) // the reader's buffer outlives the file
	p.end()
}

// Read implements io.Reader.
func (p *parts) Read(b []byte) (int, error) {
	if p.rest.Len == 0 {
		return 0, io.EOF
	}
	b = b[:min(int64(len(b)), p.rest.Len)]
	p.r.Clock.Lap(resources.StageDecode)
	// A reader that waits for bytes keeps no other from decoding.
	p.end()
	if p.err = p.ctx.Err(); p.err == nil {
		p.err = p.f.ReadAt(p.ctx, b, p.rest.Off)
	}
	p.r.Clock.Lap(resources.StageRead)
	p.r.begin()
	p.open = true
	if p.err != nil {
		return 0, p.err
	}
	p.rest.Off += int64(len(b))
	p.rest.Len -= int64(len(b))
	return len(b), nil
}

// end ends the decoding of the bytes that Read has returned.
func (p *parts) end() {
	if p.open {
		p.r.end()
		p.open = false
	}
}

// fault returns the error of a decoder that got its bytes from p: the failed read, if there was one.
func (p *parts) fault(err error) error {
	if p.err != nil {
		return p.err
	}
	return fault.AtOffset(err, p.off)
}
