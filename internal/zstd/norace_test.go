//go:build !race

package zstd_test

const raceDetector = false
