//go:build !amd64 || purego || twins

package planes

func join2(_, _ []byte, _ int) int { return 0 }

func join4(_, _ []byte, _ int) int { return 0 }

func join8(_, _ []byte, _ int) int { return 0 }
