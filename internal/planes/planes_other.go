//go:build !amd64 || purego || twins

package planes

func join2(dst, a, b []byte) { join2Go(dst, a, b) }

func join4(dst []byte, p *[4][]byte) { join4Go(dst, p, 0) }

func join8(dst []byte, p *[8][]byte) { join8Go(dst, p, 0) }
