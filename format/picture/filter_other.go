//go:build purego || twins || !amd64

package picture

func addSIMD(_, _, _ []byte) int            { return 0 }
func averageSIMD(_, _, _ []byte, _ int) int { return 0 }
func paethSIMD(_, _, _ []byte, _ int) int   { return 0 }
