package sqltype

import (
	"fmt"
	"math"
	"math/big"
)

// Bit returns 1 for true.
func Bit(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// LowBits returns the low 64 bits of x in two's complement.
func LowBits(x *big.Int) uint64 {
	low := new(big.Int).And(x, new(big.Int).SetUint64(math.MaxUint64)) // two's complement
	return low.Uint64()
}

// BigPowersOf10 are the powers of ten up to 10^76, the product of two decimals of 38 digits.
var BigPowersOf10 = func() (p [2*MaxDigits + 1]*big.Int) {
	p[0] = big.NewInt(1)
	for i := 1; i < len(p); i++ {
		p[i] = new(big.Int).Mul(p[i-1], big.NewInt(10))
	}
	return p
}()

// DivideRounded divides by 10^digits and rounds halves away from 0.
func DivideRounded(x *big.Int, digits int) *big.Int {
	if digits == 0 {
		return x
	}
	power := BigPowersOf10[digits]
	half := new(big.Int).Rsh(power, 1)
	if x.Sign() < 0 {
		half.Neg(half)
	}
	x = new(big.Int).Add(x, half)
	return x.Quo(x, power)
}

// RoundRat returns r times 10^digits, rounded to an integer, halves away from 0.
func RoundRat(r *big.Rat, digits int) *big.Int {
	number := new(big.Int).Mul(r.Num(), BigPowersOf10[digits])
	half := new(big.Int).Rsh(r.Denom(), 1)
	if number.Sign() < 0 {
		half.Neg(half)
	}
	number.Add(number, half)
	return number.Quo(number, r.Denom())
}

// PowersOf10 are the powers of ten that signed 64 bits hold.
var PowersOf10 = func() (p [19]uint64) {
	p[0] = 1
	for i := 1; i < len(p); i++ {
		p[i] = p[i-1] * 10
	}
	return p
}()

// DecimalFloat converts a decimal to the nearest float.
func DecimalFloat(h, l int64, scale int) float64 {
	if scale == 0 {
		return ToFloat(h, l)
	}
	if h == l>>63 && Abs(l) < 1<<53 && scale < len(PowersOf10) {
		return float64(l) / float64(PowersOf10[scale]) // both are exact: the quotient is the nearest
	}
	f, _ := new(big.Rat).SetFrac(ToBig(h, l), BigPowersOf10[scale]).Float64()
	return f
}

// Negate returns the negative of an integer of 128 bits.
func Negate(l, h int64) (low, high int64) {
	low = -l
	high = ^h
	if l == 0 {
		high++
	}
	return low, high
}

// ErrWide is the error for numbers beyond 38 digits or 128 bits.
var ErrWide = fmt.Errorf("a number is out of the range of %d digits or 128 bits", MaxDigits)

// Abs returns the magnitude of x, also of the least int64.
func Abs(x int64) uint64 {
	if x < 0 {
		return -uint64(x)
	}
	return uint64(x)
}

// ToFloat converts an integer of 128 bits to the nearest float.
func ToFloat(h, l int64) float64 {
	if h == l>>63 {
		return float64(l)
	}
	f, _ := new(big.Float).SetInt(ToBig(h, l)).Float64()
	return f
}

// ToBig converts an integer of 128 bits to a big.Int.
func ToBig(h, l int64) *big.Int {
	x := new(big.Int).Lsh(big.NewInt(h), 64)
	return x.Add(x, new(big.Int).SetUint64(uint64(l)))
}

// HighBits returns the bits of x above the lowest 64.
func HighBits(x *big.Int) *big.Int { return new(big.Int).Rsh(x, 64) }

// IsDigit reports whether c is an ASCII digit.
func IsDigit(c byte) bool { return c >= '0' && c <= '9' }

// Within reports whether lo <= x <= hi.
func Within(x, lo, hi *big.Int) bool { return x.Cmp(lo) >= 0 && x.Cmp(hi) <= 0 }
