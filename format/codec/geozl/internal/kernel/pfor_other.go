//go:build !amd64 || purego || twins

package kernel

// hasVectors says that there are no other loops than those in Go.
var hasVectors = false

func pforBody(dst, src []byte, width, nbits int) { pforBodyGo(dst, src, width, nbits) }
