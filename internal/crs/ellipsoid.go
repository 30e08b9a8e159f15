package crs

import "math"

// ellipsoid has the constants that projections share.
type ellipsoid struct {
	a, e2, e float64 // semi-major axis in metres, eccentricity squared and itself
	n        float64 // third flattening
	qp       float64 // q at the pole
}

// newEllipsoid makes an ellipsoid from its semi-major axis and inverse flattening; rf 0 is a
// sphere.
func newEllipsoid(a, rf float64) *ellipsoid {
	flattening := 0.0
	if rf != 0 {
		flattening = 1 / rf
	}
	shape := &ellipsoid{a: a, e2: flattening * (2 - flattening), n: flattening / (2 - flattening)}
	shape.e = math.Sqrt(shape.e2)
	shape.qp = shape.q(1)
	return shape
}

// m is the radius of the parallel at a latitude, in semi-major axes (Snyder 14-15).
func (l *ellipsoid) m(phi float64) float64 {
	sin, cos := math.Sincos(phi)
	return cos / math.Sqrt(1-l.e2*sin*sin)
}

// q is the authalic function of the sine of a latitude (Snyder 3-12).
func (l *ellipsoid) q(sin float64) float64 {
	if l.e == 0 {
		return 2 * sin
	}
	return (1 - l.e2) * (sin/(1-l.e2*sin*sin) + math.Atanh(l.e*sin)/l.e)
}

// qLeft is q at the north pole minus q at a latitude, without the cancellation near the pole.
func (l *ellipsoid) qLeft(phi float64) float64 {
	half := math.Sin((math.Pi/2 - phi) / 2)
	left, sin := 2*half*half, math.Sin(phi) // left is 1 - sin
	if l.e == 0 {
		return 2 * left
	}
	return left*(1+l.e2*sin)/(1-l.e2*sin*sin) + (1-l.e2)*math.Atanh(l.e*left/(1-l.e2*sin))/l.e
}

// fromQLeft returns the latitude of a value of qLeft, or NaN if qLeft cannot have that value.
func (l *ellipsoid) fromQLeft(d float64) float64 {
	return l.fromAuthalic(math.Pi/2 - 2*math.Asin(math.Sqrt(d/(2*l.qp))))
}

// fromAuthalic takes an authalic latitude to a geographic one (Karney 2023, equation A20).
func (l *ellipsoid) fromAuthalic(beta float64) float64 {
	n := l.n
	return beta + sines(beta, [6]float64{
		n * (4./3 + n*(4./45+n*(-16./35+n*(-2582./14175+n*(60136./467775+n*28112932./212837625))))),
		n * n * (46./45 + n*(152./945+n*(-11966./14175+n*(-21016./51975+n*251310128./638512875)))),
		n * n * n * (3044./2835 + n*(3802./14175+n*(-94388./66825-n*8797648./10945935))),
		n * n * n * n * (6059./4725 + n*(41072./93555-n*1472637812./638512875)),
		n * n * n * n * n * (768272./467775 + n*455935736./638512875),
		n * n * n * n * n * n * 4210684958. / 1915538625,
	})
}

// meridian returns the length of the meridian from the equator, in semi-major axes.
func (l *ellipsoid) meridian(phi float64) float64 {
	n := l.n
	n2 := n * n
	return l.rectifying() * (phi + sines(phi, [6]float64{
		n * (-3./2 + n2*(9./16-n2*3/32)), n2 * (15./16 + n2*(-15./32+n2*135/2048)), n * n2 * (-35./48 + n2*105/256),
		n2 * n2 * (315./512 - n2*189/512), -n * n2 * n2 * 693 / 1280, n2 * n2 * n2 * 1001 / 2048,
	}))
}

// fromMeridian is the inverse of meridian.
func (l *ellipsoid) fromMeridian(m float64) float64 {
	n := l.n
	n2 := n * n
	mu := m / l.rectifying()
	return mu + sines(mu, [6]float64{
		n * (3./2 + n2*(-27./32+n2*269/512)), n2 * (21./16 + n2*(-55./32+n2*6759/4096)),
		n * n2 * (151./96 - n2*417/128),
		n2 * n2 * (1097./512 - n2*15543/2560), n * n2 * n2 * 8011 / 2560, n2 * n2 * n2 * 293393 / 61440,
	})
}

// rectifying is the radius of the circle as long as a meridian, in semi-major axes.
func (l *ellipsoid) rectifying() float64 {
	n2 := l.n * l.n
	return (1 + n2*(1./4+n2*(1./64+n2/256))) / (1 + l.n)
}

// sines sums c[0] sin 2x + c[1] sin 4x + … by Clenshaw's rule.
func sines(x float64, c [6]float64) float64 {
	sin, cos := math.Sincos(2 * x)
	var u0, u1 float64
	for j := len(c) - 1; j >= 0; j-- {
		u0, u1 = 2*cos*u0-u1+c[j], u0
	}
	return u0 * sin
}

// conformal returns the tangent of the conformal latitude (Karney 2011, equations 7 to 9).
func (l *ellipsoid) conformal(phi float64) float64 {
	tau := math.Tan(phi)
	secant := math.Hypot(1, tau)
	sigma := math.Sinh(l.e * math.Atanh(l.e*tau/secant))
	return tau*math.Hypot(1, sigma) - sigma*secant
}

// fromConformal is the inverse of conformal, by Newton's method (Karney 2011, equations 19 to 21).
func (l *ellipsoid) fromConformal(want float64) float64 {
	tau := want
	// Within 1e-8 rad of a pole they differ by 1e-16, so no step is needed.
	if math.Abs(want) > 1e8 || want != want {
		return math.Atan(want)
	}
	for range 8 {
		secant := math.Hypot(1, tau)
		sigma := math.Sinh(l.e * math.Atanh(l.e*tau/secant))
		current := tau*math.Hypot(1, sigma) - sigma*secant
		step := (want - current) / math.Hypot(1, current) * (1 + (1-l.e2)*tau*tau) / ((1 - l.e2) * secant)
		tau += step
		if math.Abs(step) < 1e-15*math.Max(1, math.Abs(tau)) {
			break
		}
	}
	return math.Atan(tau)
}

// isometric returns the isometric latitude: t of Snyder 15-9 is its exponential, negated.
func (l *ellipsoid) isometric(phi float64) float64 { return math.Asinh(l.conformal(phi)) }

func (l *ellipsoid) fromIsometric(psi float64) float64 { return l.fromConformal(math.Sinh(psi)) }
