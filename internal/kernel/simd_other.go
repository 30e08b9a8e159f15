//go:build purego || twins || !amd64

package kernel

// Each of these does a first part of the work and returns how many numbers that is: none here.

func affineSIMD([]float32, []byte, Num, float32, float32) int { return 0 }
func streamSIMD([]float32, []byte, Num, float32, float32) int { return 0 }
func affineF32SIMD([]float32, float32, float32) int           { return 0 }
func clipSIMD([]float32, float32, float32) int                { return 0 }
func loadF16SIMD([]float32, []byte) int                       { return 0 }
func storeSIMD([]byte, []float32, Num) int                    { return 0 }
func validSIMD(_, _ []byte, _ int, _ *Match) (done, bad int)  { return 0, 0 }
func sumStridedSIMD([]byte, int, int) int                     { return 0 }
func gatherSIMD(_, _ []byte, _, _, _ int) int                 { return 0 }
func reverseSIMD(_, _ []byte, _ int) int                      { return 0 }
func turnSIMD(_, _ []byte, _, _, _, _ int, _ bool) int        { return 0 }
func storeFence()                                             {}

// Gathers reports whether Copy brings numbers of size bytes that lie stride apart side by side in vectors.
func Gathers(_, _ int) bool { return false }

// RowsFast reports whether Convert has a loop in assembly for rows of so many samples that lie step apart.
func RowsFast(_, _ Num, _, _ int) bool { return false }

func (r *Rows) convertSIMD(_, _, _ []byte, _ RowArea) int { return 0 }

// PlanarFast reports whether Planar has loops in assembly for rows that fill lines.
func PlanarFast() bool { return false }

func (p *Planar) convertSIMD(_ []byte, _, _ int, _, _ []byte, _ int) bool { return false }
