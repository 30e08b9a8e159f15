package fse

import (
	"math/bits"
	"slices"
	"testing"

	"pgregory.net/rapid"

	_ "github.com/chaski-eo/chaski/tools/testkit/seed" // random cases are the same in every run
)

const maxLog = 12 // of what OpenZL writes

// TestCounts: lists of counts, written as the format has them, are read back.
func TestCounts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		log := rapid.IntRange(minLog, maxLog).Draw(t, "log")
		var want []int16
		for left := 1 << log; left > 0; {
			n := rapid.OneOf(rapid.IntRange(-1, 3), rapid.IntRange(0, left)).Draw(t, "count")
			if n > left || len(want) > 200 {
				n = left
			}
			if n == 0 {
				want = append(want, make([]int16, rapid.IntRange(1, 9).Draw(t, "zeros"))...)
				continue
			}
			want = append(want, int16(n))
			left -= max(n, -n)
		}
		var stream []bool // lowest bit first
		add := func(v, n int) {
			for i := range n {
				stream = append(stream, v>>i&1 != 0)
			}
		}
		add(log-minLog, 4)
		left := 1<<log + 1
		for i := 0; i < len(want); i++ {
			n := int(want[i])
			v := n + 1 // 0 to left
			long := bits.Len(uint(left))
			half := 1 << (long - 1)
			short := 2*half - 1 - left // so many values take a bit less
			switch {
			case v < short:
				add(v, long-1)
			case v < half:
				add(v, long)
			default:
				add(v+short, long)
			}
			left -= max(n, -n)
			if n != 0 {
				continue
			}
			zeros := 0
			for i+1 < len(want) && want[i+1] == 0 {
				zeros++
				i++
			}
			for ; zeros >= 3; zeros -= 3 {
				add(3, 2)
			}
			add(zeros, 2)
		}
		src := make([]byte, (len(stream)+7)/8)
		for i, b := range stream {
			if b {
				src[i/8] |= 1 << (i % 8)
			}
		}
		var norm [256]int16
		n, size, ok := Counts(norm[:], append(slices.Clone(src), 0xa5))
		if !ok || size != len(src) || !slices.Equal(norm[:n], want) {
			t.Fatalf("got %v in %d bytes, %v; want %v in %d", norm[:n], size, ok, want, len(src))
		}
		if _, _, ok := Counts(norm[:], src[:len(src)-1]); ok {
			t.Fatal("a byte less accepted")
		}
	})
}
