package sql

import "math/big"

// Bit returns 1 for true.
func Bit(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// Word returns a whole number that 64 bits hold, with or without a sign, as its bits.
func Word(x *big.Int) int64 {
	if x.Sign() < 0 {
		return x.Int64()
	}
	return int64(x.Uint64())
}

// PowersOf10 are the powers of ten that signed 64 bits hold.
var PowersOf10 = func() (p [19]uint64) {
	p[0] = 1
	for i := 1; i < len(p); i++ {
		p[i] = p[i-1] * 10
	}
	return p
}()

// Abs returns the magnitude of x, also of the least int64.
func Abs(x int64) uint64 {
	if x < 0 {
		return -uint64(x)
	}
	return uint64(x)
}

// IsDigit reports whether c is an ASCII digit.
func IsDigit(c byte) bool { return c >= '0' && c <= '9' }

// Within reports whether lo <= x <= hi.
func Within(x, lo, hi *big.Int) bool { return x.Cmp(lo) >= 0 && x.Cmp(hi) <= 0 }
