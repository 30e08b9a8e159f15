package sql

import (
	"math"
	"math/big"
	"testing"

	"github.com/chaski-eo/chaski/format/tables"
)

// TestCommon: the common type of two is the same in both orders and can hold both, and that of a type with itself is
// itself.
func TestCommon(t *testing.T) {
	for a, typeA := range ByName {
		if got, ok := Common(typeA, typeA); !ok || Name(got) != Name(typeA) {
			t.Errorf("%s with itself is %s, %t", a, Name(got), ok)
		}
		for b, typeB := range ByName {
			one, ok1 := Common(typeA, typeB)
			two, ok2 := Common(typeB, typeA)
			if ok1 != ok2 || ok1 && Name(one) != Name(two) {
				t.Errorf("%s and %s are %s, %t; %s and %s are %s, %t", a, b, Name(one), ok1, b, a, Name(two), ok2)
			}
			if ok1 && IsInteger(one) && IsInteger(typeA) {
				lo, hi := Limits(one)
				least, most := Limits(typeA)
				if !Within(least, lo, hi) || !Within(most, lo, hi) {
					t.Errorf("%s and %s are %s, which does not hold %v and %v", a, b, Name(one), least, most)
				}
			}
		}
	}
}

// TestLimits: the limits of integers are those of two's complement.
func TestLimits(t *testing.T) {
	for name, want := range map[string][2]*big.Int{
		"TINYINT": {big.NewInt(math.MinInt8), big.NewInt(math.MaxInt8)},
		"BIGINT":  {big.NewInt(math.MinInt64), big.NewInt(math.MaxInt64)},
		"UINT16":  {new(big.Int), big.NewInt(math.MaxUint16)},
		"UBIGINT": {new(big.Int), new(big.Int).SetUint64(math.MaxUint64)},
	} {
		if lo, hi := Limits(ByName[name]); lo.Cmp(want[0]) != 0 || hi.Cmp(want[1]) != 0 {
			t.Errorf("%s: %v to %v, want %v", name, lo, hi, want)
		}
	}
	if Abs(math.MinInt64) != 1<<63 || Abs(-5) != 5 || Abs(5) != 5 {
		t.Error("magnitudes are wrong")
	}
	if got := ByName["FLOAT"]; IsInteger(got) || !IsNumber(got) || IsNumber(tables.Type{Kind: tables.String}) {
		t.Errorf("FLOAT is %+v", got)
	}
}
