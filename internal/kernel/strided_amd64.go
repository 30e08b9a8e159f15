//go:build !purego && !twins

package kernel

// sumMasks are the masks of running sums at a distance of 1 to 16 bytes: four shuffles that move the bytes of a vector
// up by 1, 2, 4 and 8 distances, with zeros below, and one that repeats the last distance of the vector before.
type sumMasks struct {
	moves [4][16]byte
	carry [16]byte
	used  int // moves that move anything
}

var sumNear = makeSumMasks()

func makeSumMasks() (out [17]sumMasks) {
	for distance := 1; distance <= 16; distance++ {
		m := &out[distance]
		for i := range m.moves {
			step := distance << i
			if step < 16 {
				m.used++
			}
			for k := range m.moves[i] {
				m.moves[i][k] = 0x80 // gives 0
				if k >= step {
					m.moves[i][k] = byte(k - step)
				}
			}
		}
		for k := range m.carry {
			m.carry[k] = byte(16 - distance + k%distance)
		}
	}
	return out
}

// sumStridedSIMD adds to each number of a row the one stride numbers before it; it returns how many it has done.
// Numbers need not be aligned.
func sumStridedSIMD(row []byte, size, stride int) int {
	distance := size * stride
	if !hasAVX2 || distance > 64 {
		return 0
	}
	if distance <= 16 {
		n := len(row) / 16
		if n == 0 {
			return 0
		}
		m := &sumNear[distance]
		switch moves := &m.moves[0][0]; size {
		case 1:
			sumNear8AVX(&row[0], n, moves, m.used)
		case 2:
			sumNear16AVX(&row[0], n, moves, m.used)
		case 4:
			sumNear32AVX(&row[0], n, moves, m.used)
		case 8:
			sumNear64AVX(&row[0], n, moves, m.used)
		}
		return n * 16 / size
	}
	n := len(row) / distance
	if n == 0 {
		return 0
	}
	switch wide := distance > 32; {
	case size == 1 && wide:
		sumWide8AVX2(&row[0], n, distance)
	case size == 1:
		sumFar8AVX(&row[0], n, distance)
	case size == 2 && wide:
		sumWide16AVX2(&row[0], n, distance)
	case size == 2:
		sumFar16AVX(&row[0], n, distance)
	case size == 4 && wide:
		sumWide32AVX2(&row[0], n, distance)
	case size == 4:
		sumFar32AVX(&row[0], n, distance)
	case wide:
		sumWide64AVX2(&row[0], n, distance)
	default:
		sumFar64AVX(&row[0], n, distance)
	}
	return n * stride
}

// gatherPlan says how numbers at a distance become a vector of 16 bytes.
type gatherPlan struct {
	masks [8][16]byte // one a load: it moves the numbers of the load to their places
	loads int         // 0: one number a load, for which vectors are no gain
	step  int         // bytes between loads
	last  int         // bytes from the first number of a vector to the end of its last load
}

// gathers are the plans for numbers of 1, 2 and 4 bytes, by stride.
var gathers = makeGathers()

func makeGathers() (out [3][16]gatherPlan) {
	for e := range out {
		size := 1 << e
		for stride := 2; stride < 16; stride++ {
			each := (16-size)/(size*stride) + 1 // numbers a load
			if each < 2 {
				continue
			}
			g := &out[e][stride]
			count := 16 / size // numbers a vector
			g.loads = (count + each - 1) / each
			if g.loads > 4 {
				g.loads += g.loads % 2 // the assembly does the last loads in pairs
			}
			g.step = each * size * stride
			g.last = (g.loads-1)*g.step + 16
			for l := range g.masks {
				for k := range g.masks[l] {
					g.masks[l][k] = 0x80
				}
				for i := range each {
					if end := l*each + i; end < count {
						for b := range size {
							g.masks[l][end*size+b] = byte(i*size*stride + b)
						}
					}
				}
			}
		}
	}
	return out
}

// Gathers reports whether Copy brings numbers of size bytes that lie stride apart side by side in vectors.
func Gathers(size, stride int) bool {
	listed := size <= 4 && 1 < stride && stride < 16
	return hasAVX2 && listed && gathers[size>>1][stride].loads > 0
}

// gatherSIMD copies numbers that lie stride apart to dst, one after the other; it returns how many.
func gatherSIMD(dst, src []byte, stride, n, size int) int {
	if !Gathers(size, stride) {
		return 0
	}
	g := &gathers[size>>1][stride]
	count := 16 / size
	advance := count * size * stride
	// Loads may reach past the numbers that they are for, but not past src.
	if len(src) < g.last {
		return 0
	}
	vectors := min(n/count, (len(src)-g.last)/advance+1)
	if vectors == 0 {
		return 0
	}
	_ = dst[vectors*16-1]
	gatherAVX(&dst[0], &src[0], vectors, &g.masks[0][0], g.loads, g.step, advance)
	return vectors * count
}

// n counts vectors of 16 bytes; m has the masks of a distance; only the first shifts of them move anything.
//
//go:noescape
func sumNear8AVX(row *byte, n int, m *byte, shifts int)

//go:noescape
func sumNear16AVX(row *byte, n int, m *byte, shifts int)

//go:noescape
func sumNear32AVX(row *byte, n int, m *byte, shifts int)

//go:noescape
func sumNear64AVX(row *byte, n int, m *byte, shifts int)

// n counts distances, of 16 to 32 bytes.
//
//go:noescape
func sumFar8AVX(row *byte, n, distance int)

//go:noescape
func sumFar16AVX(row *byte, n, distance int)

//go:noescape
func sumFar32AVX(row *byte, n, distance int)

//go:noescape
func sumFar64AVX(row *byte, n, distance int)

// n counts distances, of 32 to 64 bytes.
//
//go:noescape
func sumWide8AVX2(row *byte, n, distance int)

//go:noescape
func sumWide16AVX2(row *byte, n, distance int)

//go:noescape
func sumWide32AVX2(row *byte, n, distance int)

//go:noescape
func sumWide64AVX2(row *byte, n, distance int)

// n counts vectors of 16 bytes. loads is 2, 3, 4, 6 or 8.
//
//go:noescape
func gatherAVX(dst, src *byte, n int, m *byte, loads, step, advance int)
