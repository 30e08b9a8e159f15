package moments

import (
	"math/big"
	"math/bits"
)

// wordSums has the sum of whole numbers and the sum of their squares, exactly: words of 64 bits, the least significant
// first.
type wordSums struct {
	sum     [2]uint64 // two's complement
	squares [3]uint64
}

// add adds a number and its square.
func (s *wordSums) add(v int64) {
	s.addSum(uint64(v), uint64(v>>63))
	magnitude := uint64(max(v, -v)) // of -2^63, which has no positive int64, too
	high, low := bits.Mul64(magnitude, magnitude)
	s.addSquares(low, high, 0)
}

func (s *wordSums) addSum(low, high uint64) {
	var carry uint64
	s.sum[0], carry = bits.Add64(s.sum[0], low, 0)
	s.sum[1] += high + carry
}

func (s *wordSums) addSquares(low, middle, high uint64) {
	var carry uint64
	s.squares[0], carry = bits.Add64(s.squares[0], low, 0)
	s.squares[1], carry = bits.Add64(s.squares[1], middle, carry)
	s.squares[2] += high + carry
}

// merge adds other sums.
func (s *wordSums) merge(o *wordSums) {
	s.addSum(o.sum[0], o.sum[1])
	s.addSquares(o.squares[0], o.squares[1], o.squares[2])
}

// big returns both as numbers.
func (s *wordSums) big() (sum, squares big.Int) {
	for i := len(s.squares) - 1; i >= 0; i-- {
		squares.Or(squares.Lsh(&squares, 64), new(big.Int).SetUint64(s.squares[i]))
	}
	sum.Lsh(big.NewInt(int64(s.sum[1])), 64) // with its sign
	sum.Add(&sum, new(big.Int).SetUint64(s.sum[0]))
	return sum, squares
}
