package planes

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/chaski-eo/chaski/tools/testkit/guard"
)

// TestJoinAgainstByteByByte: Join agrees with one byte after the other for every size and for
// lengths around the blocks of the loops, and writes nothing outside.
func TestJoinAgainstByteByByte(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 4))
	for _, size := range []int{1, 2, 3, 4, 5, 8, 9, 40} {
		for n := range 100 {
			src, want := make([]byte, n*size), make([]byte, n*size)
			for i := range src {
				src[i] = byte(rnd.Uint32())
			}
			for i := range n {
				for k := range size {
					want[i*size+k] = src[k*n+i]
				}
			}
			buf := bytes.Repeat([]byte{0x5a}, n*size+2)
			Join(buf[1:1+n*size], src, size)
			if !bytes.Equal(buf[1:1+n*size], want) || buf[0] != 0x5a || buf[n*size+1] != 0x5a {
				t.Fatalf("%d values of %d bytes: joined otherwise", n, size)
			}
			clear(buf)
			JoinAll(buf[1:1+n*size], apart(src, size))
			if !bytes.Equal(buf[1:1+n*size], want) || buf[0] != 0 || buf[n*size+1] != 0 {
				t.Fatalf("%d values of %d bytes: joined otherwise from planes", n, size)
			}
			back := make([]byte, n*size)
			if Split(back, want, size); !bytes.Equal(back, src) {
				t.Fatalf("%d values of %d bytes: split otherwise", n, size)
			}
		}
	}
}

// apart returns copies of the planes of src, each in memory of its own.
func apart(src []byte, size int) (planes [][]byte) {
	n := len(src) / size
	for k := range size {
		planes = append(planes, bytes.Clone(src[k*n:(k+1)*n]))
	}
	return planes
}

func BenchmarkJoin2(b *testing.B) {
	src, dst := make([]byte, 64<<10), make([]byte, 64<<10)
	b.SetBytes(int64(len(src)))
	for b.Loop() {
		Join(dst, src, 2)
	}
}

// TestNothingOutsideIsTouched: no loop reads or writes outside of its arguments.
func TestNothingOutsideIsTouched(t *testing.T) {
	guard.Faults(t)
	src, dst := guard.New(t, 301*40), guard.New(t, 301*40)
	for _, back := range []bool{false, true} {
		for n := range 301 {
			for _, size := range []int{1, 2, 3, 4, 5, 8, 9, 40} {
				Join(dst.At(back, n*size), src.At(back, n*size), size)
				Split(dst.At(back, n*size), src.At(back, n*size), size)
			}
		}
	}
}
