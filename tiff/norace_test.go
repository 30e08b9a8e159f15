//go:build !race

package tiff

const raceDetector = false
