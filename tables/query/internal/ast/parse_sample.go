package ast

import (
	"strconv"

	"github.com/chaski-eo/chaski/tables/query/internal/sqlerr"
)

// sample reads the clause after USING SAMPLE or TABLESAMPLE:
//
//	10, 10 ROWS, 10%, 10 PERCENT, each optionally followed by (method[, seed])
//	method(10%), (10 ROWS)
//
// REPEATABLE (seed) may follow.
func (p *parser) sample() (*sample, error) {
	s := &sample{}
	method := ""
	if t := p.peek(); t.kind == tName && p.toks[p.at+1].is("(") {
		p.at++
		method = t.text
	}
	brackets := p.accept("(")
	if err := p.sampleSize(s); err != nil {
		return nil, err
	}
	if brackets {
		if err := p.expect(")"); err != nil {
			return nil, err
		}
	}
	if !brackets && p.accept("(") {
		method = p.take().text
		if p.accept(",") {
			if err := p.seed(s); err != nil {
				return nil, err
			}
		}
		if err := p.expect(")"); err != nil {
			return nil, err
		}
	}
	if p.accept("REPEATABLE") {
		if err := p.expect("("); err != nil {
			return nil, err
		}
		if err := p.seed(s); err != nil {
			return nil, err
		}
		if err := p.expect(")"); err != nil {
			return nil, err
		}
	}
	return s, s.setMethod(method)
}

// setMethod checks the sampling method: bernoulli and system decide about each row by itself, reservoir draws an exact
// number.
func (s *sample) setMethod(method string) error {
	switch tok := (token{kind: tName, text: method}); {
	case method == "":
	case tok.is("reservoir"):
		s.exact = true
	case !tok.is("bernoulli") && !tok.is("system"):
		return sqlerr.Unsupported("the sampling method %q", method)
	case !s.share:
		return sqlerr.Unsupported("%s of a number of rows", method)
	}
	return nil
}

func (p *parser) sampleSize(s *sample) error {
	tok := p.take()
	if tok.kind != tNumber {
		p.at--
		return p.unexpected()
	}
	if p.accept("%") || p.accept("PERCENT") {
		x, err := strconv.ParseFloat(tok.text, 64)
		if err != nil || x > 100 {
			return sqlerr.Bind("a sample is %s%%: it must be between 0 and 100", tok.text)
		}
		s.percent, s.share = x, true
		return nil
	}
	p.accept("ROWS")
	n, err := strconv.ParseInt(tok.text, 10, 64)
	if err != nil {
		return sqlerr.Bind("a sample is %s rows: it must be a whole number", tok.text)
	}
	s.rows = n
	return nil
}

func (p *parser) seed(s *sample) error {
	token := p.take()
	n, err := strconv.ParseUint(token.text, 10, 64)
	if token.kind != tNumber || err != nil {
		return sqlerr.Bind("the seed of a sample is %q: it must be a whole number", token.text)
	}
	s.seed = n
	return nil
}
