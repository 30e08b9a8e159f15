package shift

import (
	"math"
	"math/cmplx"
	"math/rand/v2"
	"testing"
)

// TestTransform: the transform is the sum that defines it, transposed, and inverse undoes it but for h·w.
func TestTransform(t *testing.T) {
	const h, w, used = 9, 10, 7
	rng := rand.New(rand.NewPCG(3, 4))
	p := make([]complex128, h*w)
	for i := range used * w {
		p[i] = complex(rng.NormFloat64(), rng.NormFloat64())
	}
	got := append([]complex128(nil), p...)
	var tr transform
	tr.resize(h, w)
	tr.forward(got, used)
	for v := range h {
		for u := range w {
			var want complex128
			for y := range h {
				for x := range w {
					turn := float64(v*y)/h + float64(u*x)/w
					want += p[y*w+x] * cmplx.Exp(complex(0, -2*math.Pi*turn))
				}
			}
			if cmplx.Abs(got[u*h+v]-want) > 1e-9 {
				t.Fatalf("%d, %d: %v, want %v", v, u, got[u*h+v], want)
			}
		}
	}
	tr.inverse(got)
	for i, want := range p {
		if cmplx.Abs(got[i]/(h*w)-want) > 1e-12 {
			t.Fatalf("%d: %v, want %v", i, got[i]/(h*w), want)
		}
	}
}

func TestFast(t *testing.T) {
	for n, want := range map[int]int{1: 1, 7: 8, 230: 240, 461: 480, 921: 960, 1024: 1024} {
		if got := fast(n); got != want {
			t.Errorf("%d: %d, want %d", n, got, want)
		}
	}
}
