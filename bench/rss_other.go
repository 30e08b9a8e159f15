//go:build !unix

package bench

func maxRSS(bool) int64 { return 0 }
