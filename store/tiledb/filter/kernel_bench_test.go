package filter

import (
	"fmt"
	"testing"

	"github.com/chaski-eo/chaski/internal/planes"
)

func BenchmarkKernels(b *testing.B) {
	src, dst := make([]byte, 64<<10), make([]byte, 64<<10)
	for i := range src {
		src[i] = byte(i * i >> 3)
	}
	for _, size := range []int{2, 4} {
		b.Run(fmt.Sprint("unbitshuffle/", size), func(b *testing.B) {
			b.SetBytes(int64(len(src)))
			for b.Loop() {
				unbitshuffle(dst, src, size)
			}
		})
		b.Run(fmt.Sprint("unshuffle/", size), func(b *testing.B) {
			b.SetBytes(int64(len(src)))
			for b.Loop() {
				planes.Join(dst, src, size)
			}
		})
		b.Run(fmt.Sprint("widen8/", size), func(b *testing.B) {
			b.SetBytes(int64(len(src)))
			for b.Loop() {
				widen(dst, src[:len(src)/size], size, 8, true, 77)
			}
		})
		words := make([]byte, 8*ddWords(len(dst)/size, 5))
		b.Run(fmt.Sprint("double delta/", size), func(b *testing.B) {
			b.SetBytes(int64(len(src)))
			for b.Loop() {
				ddDecode(dst, size, 5, 1, 2, words)
			}
		})
	}
}
