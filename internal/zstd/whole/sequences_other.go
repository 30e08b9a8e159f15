//go:build !amd64 || purego || twins

package whole

var hasLoop = false

// loop leaves all sequences to the loop in Go.
func (*run) loop() int { return notDecoded }
