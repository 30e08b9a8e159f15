package textguard

import (
	"bytes"
	"context"
	"io"

	"github.com/chaski-eo/chaski/fault"
)

// Parts is a text that is read part by part, such as the lines of a table or the objects of JSON, which their parser
// holds as a whole. It refuses a part that is too large. Between pieces of the text others have their turn.
type Parts struct {
	// Limit bounds the bytes of a part, with what the parser has read ahead.
	Limit int64
	// Byte comes at most maxMembers times in a part, 0 for any: each takes 40 bytes or more while the parser has it.
	Byte byte
	// Values counts the values of a part, if it has a Separator.
	Values Values

	ctx         context.Context
	text        io.Reader
	name, what  string // of the text and of a part, for errors
	pos, length int64  // in the text; since the part began
	bytes       int    // that are Byte
}

// NewParts returns a text by its name, such as "table", whose parts are each what, such as "a line".
func NewParts(ctx context.Context, text io.Reader, name, what string, limit int64) *Parts {
	return &Parts{Limit: limit, ctx: ctx, text: text, name: name, what: what}
}

// Next begins the next part.
func (p *Parts) Next() {
	p.length, p.bytes = 0, 0
	p.Values.Next()
}

// Read implements io.Reader.
func (p *Parts) Read(b []byte) (int, error) {
	if err := p.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := p.text.Read(b)
	p.pos, p.length = p.pos+int64(n), p.length+int64(n)
	if p.Byte != 0 {
		p.bytes += bytes.Count(b[:n], []byte{p.Byte})
	}
	switch {
	case p.bytes > maxMembers:
		return 0, fault.At(fault.Limit, p.name, p.pos, "%s with over %d values", p.what, maxMembers)
	case p.Values.Separator != 0 && !p.Values.Add(b[:n]):
		return 0, fault.At(fault.Limit, p.name, p.pos, "%s with over %d values", p.what, p.Values.Most)
	case p.length > p.Limit:
		return 0, fault.At(fault.Limit, p.name, p.pos, "%s of over %d bytes", p.what, p.Limit)
	}
	return n, err
}
