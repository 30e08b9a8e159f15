package query

import (
	"math"
	"math/rand/v2"
	"strconv"
)

// sample is a random choice of rows.
type sample struct {
	rows    int64   // so many of them
	percent float64 // or a share
	share   bool
	exact   bool // exactly the share: reservoir
	seed    uint64
}

// sample reads what stands behind USING SAMPLE or TABLESAMPLE:
//
//	10, 10 ROWS, 10%, 10 PERCENT, each with (method[, seed]) behind it; method(10%); (10 ROWS); and REPEATABLE (seed)
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

// setMethod checks the method: bernoulli and system look at each row by itself, reservoir takes so many of them.
func (s *sample) setMethod(method string) error {
	switch t := (token{kind: tName, text: method}); {
	case method == "":
	case t.is("reservoir"):
		s.exact = true
	case !t.is("bernoulli") && !t.is("system"):
		return unsupported("the sampling method %q", method)
	case !s.share:
		return unsupported("%s of a number of rows", method)
	}
	return nil
}

func (p *parser) sampleSize(s *sample) error {
	t := p.take()
	if t.kind != tNumber {
		p.at--
		return p.unexpected()
	}
	if p.accept("%") || p.accept("PERCENT") {
		x, err := strconv.ParseFloat(t.text, 64)
		if err != nil || x > 100 {
			return binderError("a sample of %s%%: it is between 0 and 100", t.text)
		}
		s.percent, s.share = x, true
		return nil
	}
	p.accept("ROWS")
	n, err := strconv.ParseInt(t.text, 10, 64)
	if err != nil {
		return binderError("a sample of %s rows: it has to be a whole number", t.text)
	}
	s.rows = n
	return nil
}

func (p *parser) seed(s *sample) error {
	t := p.take()
	n, err := strconv.ParseUint(t.text, 10, 64)
	if t.kind != tNumber || err != nil {
		return binderError("the seed of a sample is %q: it has to be a whole number", t.text)
	}
	s.seed = n
	return nil
}

// of returns which of n rows are chosen, in their order. The same seed and n choose the same rows, on every machine: the
// numbers are those of Go's math/rand/v2.PCG with the seeds (seed, 0).
func (s *sample) of(n int) []int32 {
	rng := rand.New(rand.NewPCG(s.seed, 0))
	out := []int32{}
	if s.share && !s.exact {
		for r := range n {
			if rng.Float64()*100 < s.percent {
				out = append(out, int32(r))
			}
		}
		return out
	}
	want := s.rows
	if s.share {
		want = int64(math.Round(float64(n) * s.percent / 100))
	}
	want = min(want, int64(n))
	for r := 0; want > 0; r++ { // of those that are left, each is as likely
		if rng.Int64N(int64(n-r)) < want {
			out = append(out, int32(r))
			want--
		}
	}
	return out
}
