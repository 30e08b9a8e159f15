package crs

import "math"

// projection converts radians from the central meridian and of latitude to metres from the false
// origin, and back. Points without an image become NaN.
type projection interface {
	forward(lam, phi float64) (x, y float64)
	inverse(x, y float64) (lam, phi float64)
}

const quarter = math.Pi / 2

var nan = math.NaN()

// longlat is the identity: radians stay radians.
type longlat struct{}

func (longlat) forward(lam, phi float64) (x, y float64) { return lam, phi }
func (longlat) inverse(x, y float64) (lam, phi float64) { return x, y }

// tmerc is the transverse Mercator projection (EPSG method 9807) by Krüger's series to the sixth order (Karney 2011,
// equations 35 and 36): exact to nanometres within 3,900 km of the central meridian.
type tmerc struct {
	l           *ellipsoid
	radius      float64
	alpha, beta [6]float64
	origin      float64 // y of the latitude of origin
}

// maxEta limits the distance from the central meridian: eta is 1.6 at 66 degrees, and 2 at 75. Past it the series grows
// without bound, and would put points of the other side of the Earth on the map.
const maxEta = 2

func newTMerc(l *ellipsoid, k, phi0 float64) *tmerc {
	n := l.n
	proj := &tmerc{l: l, radius: l.a * k * l.rectifying()}
	proj.alpha = [6]float64{
		n * (1./2 + n*(-2./3+n*(5./16+n*(41./180+n*(-127./288+n*7891./37800))))),
		n * n * (13./48 + n*(-3./5+n*(557./1440+n*(281./630-n*1983433./1935360)))),
		n * n * n * (61./240 + n*(-103./140+n*(15061./26880+n*167603./181440))),
		n * n * n * n * (49561./161280 + n*(-179./168+n*6601661./7257600)),
		n * n * n * n * n * (34729./80640 - n*3418889./1995840),
		n * n * n * n * n * n * 212378941. / 319334400,
	}
	proj.beta = [6]float64{
		n * (1./2 + n*(-2./3+n*(37./96+n*(-1./360+n*(-81./512+n*96199./604800))))),
		n * n * (1./48 + n*(1./15+n*(-437./1440+n*(46./105-n*1118711./3870720)))),
		n * n * n * (17./480 + n*(-37./840+n*(-209./4480+n*5569./90720))),
		n * n * n * n * (4397./161280 + n*(-11./504-n*830251./7257600)),
		n * n * n * n * n * (4583./161280 - n*108847./3991680),
		n * n * n * n * n * n * 20648693. / 638668800,
	}
	_, proj.origin = proj.forward(0, phi0)
	return proj
}

// series sums c[j] sin 2(j+1)ζ of a complex ζ = xi + i eta by Clenshaw's rule.
func series(c *[6]float64, xi, eta float64) (re, im float64) {
	sin, cos := math.Sincos(2 * xi)
	sinh, cosh := math.Sinh(2*eta), math.Cosh(2*eta)
	ar, ai := 2*cos*cosh, -2*sin*sinh // 2 cos 2ζ
	var r0, i0, r1, i1 float64
	for j := len(c) - 1; j >= 0; j-- {
		r0, i0, r1, i1 = ar*r0-ai*i0-r1+c[j], ar*i0+ai*r0-i1, r0, i0
	}
	sr, si := sin*cosh, cos*sinh // sin 2ζ
	return r0*sr - i0*si, r0*si + i0*sr
}

func (p *tmerc) forward(lam, phi float64) (x, y float64) {
	tau := p.l.conformal(phi)
	sin, cos := math.Sincos(lam)
	xi, eta := math.Atan2(tau, cos), math.Asinh(sin/math.Hypot(tau, cos))
	if !(math.Abs(eta) <= maxEta) {
		return nan, nan
	}
	re, im := series(&p.alpha, xi, eta)
	return p.radius * (eta + im), p.radius*(xi+re) - p.origin
}

func (p *tmerc) inverse(x, y float64) (lam, phi float64) {
	xi, eta := (y+p.origin)/p.radius, x/p.radius
	if !(math.Abs(xi) <= math.Pi && math.Abs(eta) <= maxEta) {
		return nan, nan
	}
	re, im := series(&p.beta, xi, eta)
	xi, eta = xi-re, eta-im
	sin, cos := math.Sincos(xi)
	sinh := math.Sinh(eta)
	return math.Atan2(sinh, cos), p.l.fromConformal(sin / math.Hypot(sinh, cos))
}

// merc is the Mercator projection (EPSG methods 9804 and 9805); web is the one of web maps (1024),
// which takes latitudes of the ellipsoid for latitudes of a sphere.
type merc struct {
	l      *ellipsoid
	radius float64
	web    bool
}

func (p *merc) forward(lam, phi float64) (x, y float64) {
	if p.web {
		return p.radius * lam, p.radius * math.Asinh(math.Tan(phi))
	}
	return p.radius * lam, p.radius * p.l.isometric(phi)
}

func (p *merc) inverse(x, y float64) (lam, phi float64) {
	if p.web {
		return x / p.radius, math.Atan(math.Sinh(y / p.radius))
	}
	return x / p.radius, p.l.fromIsometric(y / p.radius)
}

// cone is what conic projections share: parallels are arcs around the apex, meridians are straight lines from it.
type cone struct {
	// angle at the apex for one unit of longitude, the cone constant; negative if the apex is in
	// the south
	n      float64
	origin float64 // radius of the parallel at y = 0, in metres; negative if n is, like every radius
}

// flat returns the point at longitude lam on the parallel of that radius.
func (c *cone) flat(lam, radius float64) (x, y float64) {
	sin, cos := math.Sincos(c.n * lam)
	return radius * sin, c.origin - radius*cos
}

// polar is the inverse of flat. The longitude of the apex, where radius is 0, is undefined.
func (c *cone) polar(x, y float64) (lam, radius float64) {
	y = c.origin - y
	sign := math.Copysign(1, c.n)
	return math.Atan2(sign*x, sign*y) / c.n, sign * math.Hypot(x, y)
}

// lcc is the Lambert conformal conic projection (EPSG methods 9801 and 9802; Snyder 15-1 to 15-11).
type lcc struct {
	cone
	l *ellipsoid
	f float64
}

func newLCC(shape *ellipsoid, k, phi0, phi1, phi2 float64) *lcc {
	proj := &lcc{l: shape, cone: cone{n: math.Sin(phi1)}}
	if math.Abs(phi1-phi2) > 1e-10 {
		proj.n = math.Log(shape.m(phi1)/shape.m(phi2)) / (shape.isometric(phi2) - shape.isometric(phi1))
	}
	proj.f = shape.a * k * shape.m(phi1) / proj.n * math.Exp(proj.n*shape.isometric(phi1))
	proj.origin = proj.radius(phi0)
	return proj
}

func (p *lcc) radius(phi float64) float64 {
	if math.Abs(phi) >= quarter && (phi > 0) == (p.n > 0) {
		return 0
	}
	return p.f * math.Exp(-p.n*p.l.isometric(phi))
}

func (p *lcc) forward(lam, phi float64) (x, y float64) { return p.flat(lam, p.radius(phi)) }

func (p *lcc) inverse(x, y float64) (lam, phi float64) {
	lam, radius := p.polar(x, y)
	if radius == 0 {
		return 0, math.Copysign(quarter, p.n)
	}
	return lam, p.l.fromIsometric(-math.Log(radius/p.f) / p.n)
}

// aea is Albers' equal-area conic projection (EPSG method 9822; Snyder 14-1 to 14-19).
type aea struct {
	cone
	l *ellipsoid
	c float64
}

func newAEA(shape *ellipsoid, phi0, phi1, phi2 float64) *aea {
	proj := &aea{l: shape, cone: cone{n: math.Sin(phi1)}}
	m1, q1 := shape.m(phi1), shape.q(math.Sin(phi1))
	if math.Abs(phi1-phi2) > 1e-10 {
		m2, q2 := shape.m(phi2), shape.q(math.Sin(phi2))
		proj.n = (m1*m1 - m2*m2) / (q2 - q1)
	}
	proj.c = m1*m1 + proj.n*q1
	proj.origin = proj.radius(phi0)
	return proj
}

func (p *aea) radius(phi float64) float64 {
	return p.l.a * math.Sqrt(p.c-p.n*p.l.q(math.Sin(phi))) / p.n
}

func (p *aea) forward(lam, phi float64) (x, y float64) { return p.flat(lam, p.radius(phi)) }

func (p *aea) inverse(x, y float64) (lam, phi float64) {
	lam, radius := p.polar(x, y)
	radius = radius * p.n / p.l.a
	q := (p.c - radius*radius) / p.n
	if radius == 0 {
		return 0, p.l.fromAuthalic(math.Asin(max(-1, min(1, q/p.l.qp))))
	}
	return lam, p.l.fromAuthalic(math.Asin(q / p.l.qp))
}

// laea is Lambert's azimuthal equal-area projection (EPSG method 9820).
type laea struct {
	l          *ellipsoid
	phi0       float64
	radius, d  float64
	sin0, cos0 float64 // of the authalic latitude of origin
}

func newLAEA(shape *ellipsoid, phi0 float64) *laea {
	proj := &laea{l: shape, phi0: phi0, radius: shape.a * math.Sqrt(shape.qp/2), d: 1}
	proj.sin0, proj.cos0 = proj.beta(phi0)
	if !proj.polar() {
		proj.d = shape.a * shape.m(phi0) / (proj.radius * proj.cos0)
	}
	return proj
}

func (p *laea) polar() bool { return math.Abs(math.Abs(p.phi0)-quarter) < 1e-10 }

// beta returns sine and cosine of the authalic latitude.
func (p *laea) beta(phi float64) (sin, cos float64) {
	left := p.l.qLeft(math.Abs(phi))
	return math.Copysign(1-left/p.l.qp, phi), math.Sqrt(left*(2*p.l.qp-left)) / p.l.qp
}

func (p *laea) forward(lam, phi float64) (x, y float64) {
	sin, cos := math.Sincos(lam)
	if p.polar() {
		sign := math.Copysign(1, p.phi0)
		radius := p.l.a * math.Sqrt(p.l.qLeft(sign*phi))
		return radius * sin, -sign * radius * cos
	}
	sinBeta, cosBeta := p.beta(phi)
	scale := p.radius * math.Sqrt(2/(1+p.sin0*sinBeta+p.cos0*cosBeta*cos))
	return scale * p.d * cosBeta * sin, scale / p.d * (p.cos0*sinBeta - p.sin0*cosBeta*cos)
}

func (p *laea) inverse(x, y float64) (lam, phi float64) {
	if p.polar() {
		sign := math.Copysign(1, p.phi0)
		radius := math.Hypot(x, y) / p.l.a
		return math.Atan2(x, -sign*y), sign * p.l.fromQLeft(radius*radius)
	}
	x, y = x/p.d, y*p.d
	radius := math.Hypot(x, y)
	if radius == 0 {
		return 0, p.phi0
	}
	sin, cos := math.Sincos(2 * math.Asin(radius/(2*p.radius)))
	beta := math.Asin(max(-1, min(1, cos*p.sin0+y*sin*p.cos0/radius)))
	if sin != sin {
		beta = nan
	}
	return math.Atan2(x*sin, radius*p.cos0*cos-y*p.sin0*sin), p.l.fromAuthalic(beta)
}

// stere is the polar stereographic projection (EPSG methods 9810 and 9829).
type stere struct {
	l      *ellipsoid
	sign   float64 // of the pole
	factor float64 // of exp(-isometric latitude), in metres
}

func newStere(shape *ellipsoid, south bool, k, phiTS float64) *stere {
	proj := &stere{l: shape, sign: 1}
	if south {
		proj.sign = -1
	}
	if phiTS != 0 && math.Abs(phiTS) < quarter-1e-10 {
		phi := math.Abs(phiTS)
		proj.factor = shape.a * shape.m(phi) * math.Exp(shape.isometric(phi))
	} else {
		ecc := shape.e
		proj.factor = 2 * shape.a * k / math.Sqrt(math.Pow(1+ecc, 1+ecc)*math.Pow(1-ecc, 1-ecc))
	}
	return proj
}

func (p *stere) forward(lam, phi float64) (x, y float64) {
	radius := 0.0
	if p.sign*phi < quarter {
		radius = p.factor * math.Exp(-p.l.isometric(p.sign*phi))
	}
	sin, cos := math.Sincos(lam)
	return radius * sin, -p.sign * radius * cos
}

func (p *stere) inverse(x, y float64) (lam, phi float64) {
	radius := math.Hypot(x, y)
	if radius == 0 {
		return 0, p.sign * quarter
	}
	return math.Atan2(x, -p.sign*y), p.sign * p.l.fromIsometric(-math.Log(radius/p.factor))
}

// sterea is the oblique stereographic projection by way of Gauss' conformal sphere (EPSG method 9809).
type sterea struct {
	l          *ellipsoid
	n, logC    float64
	diameter   float64
	sin0, cos0 float64
}

func newSterea(shape *ellipsoid, k, phi0 float64) *sterea {
	sin, cos := math.Sincos(phi0)
	denom := 1 - shape.e2*sin*sin
	proj := &sterea{l: shape, n: math.Sqrt(1 + shape.e2*cos*cos*cos*cos/(1-shape.e2))}
	proj.diameter = 2 * k * shape.a * math.Sqrt(1-shape.e2) / denom
	chi := math.Tanh(proj.n * shape.isometric(phi0))
	proj.logC = math.Log((proj.n+sin)*(1-chi)/((proj.n-sin)*(1+chi))) / 2
	proj.sin0 = math.Tanh(proj.logC + proj.n*shape.isometric(phi0))
	proj.cos0 = math.Sqrt(1 - proj.sin0*proj.sin0)
	return proj
}

func (p *sterea) forward(lam, phi float64) (x, y float64) {
	psi := p.logC + p.n*p.l.isometric(phi)
	sinChi, cosChi := math.Tanh(psi), 1/math.Cosh(psi)
	sin, cos := math.Sincos(p.n * lam)
	scale := p.diameter / (1 + sinChi*p.sin0 + cosChi*p.cos0*cos)
	return scale * cosChi * sin, scale * (sinChi*p.cos0 - cosChi*p.sin0*cos)
}

func (p *sterea) inverse(x, y float64) (lam, phi float64) {
	radius := math.Hypot(x, y)
	if radius == 0 {
		return 0, p.l.fromIsometric((math.Atanh(p.sin0) - p.logC) / p.n)
	}
	sin, cos := math.Sincos(2 * math.Atan(radius/p.diameter))
	chi := cos*p.sin0 + y*sin*p.cos0/radius
	return math.Atan2(x*sin, radius*p.cos0*cos-y*p.sin0*sin) / p.n, p.l.fromIsometric((math.Atanh(chi) - p.logC) / p.n)
}

// somerc is Switzerland's oblique Mercator projection (swisstopo, Formulas and constants, 2016):
// EPSG method 9815 with an azimuth of 90 degrees.
type somerc struct {
	l            *ellipsoid
	c, k, radius float64
	sin0, cos0   float64
}

func newSomerc(shape *ellipsoid, k, phi0 float64) *somerc {
	sin, cos := math.Sincos(phi0)
	proj := &somerc{l: shape, c: math.Sqrt(1 + shape.e2*cos*cos*cos*cos/(1-shape.e2))}
	proj.sin0 = sin / proj.c
	proj.cos0 = math.Sqrt(1 - proj.sin0*proj.sin0)
	proj.k = math.Atanh(proj.sin0) - proj.c*shape.isometric(phi0)
	proj.radius = k * shape.a * math.Sqrt(1-shape.e2) / (1 - shape.e2*sin*sin)
	return proj
}

func (p *somerc) forward(lam, phi float64) (x, y float64) {
	psi := p.c*p.l.isometric(phi) + p.k
	sinB, cosB := math.Tanh(psi), 1/math.Cosh(psi)
	sin, cos := math.Sincos(p.c * lam)
	return p.radius * math.Atan2(cosB*sin, p.sin0*sinB+p.cos0*cosB*cos),
		p.radius * math.Atanh(p.cos0*sinB-p.sin0*cosB*cos)
}

func (p *somerc) inverse(x, y float64) (lam, phi float64) {
	sinB, cosB := math.Tanh(y/p.radius), 1/math.Cosh(y/p.radius)
	sin, cos := math.Sincos(x / p.radius)
	return math.Atan2(cosB*sin, p.cos0*cosB*cos-p.sin0*sinB) / p.c,
		p.l.fromIsometric((math.Atanh(p.cos0*sinB+p.sin0*cosB*cos) - p.k) / p.c)
}

// omerc is the Hotine oblique Mercator projection (EPSG methods 9812, variant A, and 9815, variant B).
type omerc struct {
	l                    *ellipsoid
	a, b, logH, lam0, uc float64
	sin0, cos0           float64 // of the azimuth at the equator
	sinC, cosC           float64 // of the angle of the rectified grid
}

func newOMerc(shape *ellipsoid, k, phi, alpha, gamma float64, variantA bool) *omerc {
	sin, cos := math.Sincos(phi)
	denom := 1 - shape.e2*sin*sin
	proj := &omerc{l: shape, b: math.Sqrt(1 + shape.e2*cos*cos*cos*cos/(1-shape.e2))}
	proj.a = shape.a * proj.b * k * math.Sqrt(1-shape.e2) / denom
	ratio := max(1, proj.b*math.Sqrt(1-shape.e2)/(cos*math.Sqrt(denom)))
	root := math.Copysign(math.Sqrt(ratio*ratio-1), phi)
	f := ratio + root
	proj.logH = math.Log(f) - proj.b*shape.isometric(phi)
	proj.sin0 = math.Sin(alpha) / ratio
	proj.cos0 = math.Sqrt(1 - proj.sin0*proj.sin0)
	proj.lam0 = -math.Asin((f-1/f)/2*proj.sin0/proj.cos0) / proj.b
	proj.sinC, proj.cosC = math.Sincos(gamma)
	if !variantA {
		if math.Abs(math.Abs(alpha)-quarter) < 1e-10 {
			proj.uc = -proj.a * proj.lam0
		} else {
			proj.uc = proj.a / proj.b * math.Atan2(math.Abs(root), math.Cos(alpha))
			proj.uc = math.Copysign(proj.uc, phi)
		}
	}
	return proj
}

func (p *omerc) forward(lam, phi float64) (x, y float64) {
	logQ := p.logH + p.b*p.l.isometric(phi)
	sin, cos := math.Sincos(p.b * (lam - p.lam0))
	v := -p.a / p.b * math.Atanh((-sin*p.cos0+math.Sinh(logQ)*p.sin0)/math.Cosh(logQ))
	u := p.a/p.b*math.Atan2(math.Sinh(logQ)*p.cos0+sin*p.sin0, cos) - p.uc
	return v*p.cosC + u*p.sinC, u*p.cosC - v*p.sinC
}

func (p *omerc) inverse(x, y float64) (lam, phi float64) {
	v, u := x*p.cosC-y*p.sinC, y*p.cosC+x*p.sinC+p.uc
	logQ := -p.b * v / p.a
	sin, cos := math.Sincos(p.b * u / p.a)
	uPrime := (sin*p.cos0 + math.Sinh(logQ)*p.sin0) / math.Cosh(logQ)
	return p.lam0 - math.Atan2(math.Sinh(logQ)*p.cos0-sin*p.sin0, cos)/p.b,
		p.l.fromIsometric((math.Atanh(uPrime) - p.logH) / p.b)
}

// cea is the cylindrical equal-area projection (EPSG method 9835; Snyder 10-14 to 10-20).
type cea struct {
	l *ellipsoid
	k float64
}

func (p *cea) forward(lam, phi float64) (x, y float64) {
	return p.l.a * p.k * lam, p.l.a * p.l.q(math.Sin(phi)) / (2 * p.k)
}

func (p *cea) inverse(x, y float64) (lam, phi float64) {
	return x / (p.l.a * p.k), p.l.fromAuthalic(math.Asin(clampQ(2 * y * p.k / p.l.a / p.l.qp)))
}

// clampQ allows a sine to exceed 1 by a rounding error, because it is exactly 1 at the edges of world maps.
func clampQ(s float64) float64 {
	if math.Abs(s) > 1 && math.Abs(s) < 1+1e-9 {
		return math.Copysign(1, s)
	}
	return s
}

// eqc is the equidistant cylindrical projection (EPSG method 1028).
type eqc struct {
	l *ellipsoid
	k float64 // radius of the standard parallel
}

func (p *eqc) forward(lam, phi float64) (x, y float64) { return p.k * lam, p.l.a * p.l.meridian(phi) }
func (p *eqc) inverse(x, y float64) (lam, phi float64) {
	return x / p.k, p.l.fromMeridian(y / p.l.a)
}

// sinu is the sinusoidal projection (Snyder 30-8 to 30-11).
type sinu struct{ l *ellipsoid }

func (p *sinu) forward(lam, phi float64) (x, y float64) {
	return p.l.a * p.l.m(phi) * lam, p.l.a * p.l.meridian(phi)
}

func (p *sinu) inverse(x, y float64) (lam, phi float64) {
	phi = p.l.fromMeridian(y / p.l.a)
	if math.Abs(phi) >= quarter {
		return 0, phi
	}
	return x / (p.l.a * p.l.m(phi)), phi
}

// moll is Mollweide's projection of the sphere (Snyder 31-1 to 31-8).
type moll struct{ radius float64 }

func (p *moll) forward(lam, phi float64) (x, y float64) {
	want := math.Pi * math.Sin(phi)
	theta := phi
	if math.Abs(phi) >= quarter-1e-12 {
		theta = math.Copysign(quarter, phi)
	} else {
		// Bisection is safe where Newton's method is slow, near the poles; 60 halvings exhaust the digits.
		low, high := -quarter, quarter
		for range 60 {
			excess := 2*theta + math.Sin(2*theta) - want
			if excess == 0 {
				break
			}
			if excess > 0 {
				high = theta
			} else {
				low = theta
			}
			next := theta - excess/(2+2*math.Cos(2*theta))
			if !(next > low && next < high) {
				next = (low + high) / 2
			}
			if next == theta {
				break
			}
			theta = next
		}
	}
	sin, cos := math.Sincos(theta)
	return 2 * math.Sqrt2 / math.Pi * p.radius * lam * cos, math.Sqrt2 * p.radius * sin
}

func (p *moll) inverse(x, y float64) (lam, phi float64) {
	theta := math.Asin(clampQ(y / (math.Sqrt2 * p.radius)))
	cos := math.Cos(theta)
	phi = math.Asin(clampQ((2*theta + math.Sin(2*theta)) / math.Pi))
	if cos < 1e-12 {
		return 0, phi
	}
	return math.Pi * x / (2 * math.Sqrt2 * p.radius * cos), phi
}

// poly is the American polyconic projection (EPSG method 9818; Snyder 18-12 to 18-22).
type poly struct {
	l      *ellipsoid
	origin float64
}

func (p *poly) forward(lam, phi float64) (x, y float64) {
	if !(math.Abs(lam) <= quarter) { // farther out the map folds over itself
		return nan, nan
	}
	if phi == 0 {
		return p.l.a * lam, -p.l.a * p.origin
	}
	sin, cos := math.Sincos(phi)
	cot := cos / (sin * math.Sqrt(1-p.l.e2*sin*sin))
	half := math.Sin(lam * sin / 2)
	return p.l.a * cot * math.Sin(lam*sin), p.l.a * (p.l.meridian(phi) - p.origin + cot*2*half*half)
}

func (p *poly) inverse(x, y float64) (lam, phi float64) {
	x, y = x/p.l.a, y/p.l.a
	a := p.origin + y
	if math.Abs(a) < 1e-15 {
		return x, 0
	}
	b := a*a + x*x
	phi = a
	for range 30 {
		sin, cos := math.Sincos(phi)
		denom := 1 - p.l.e2*sin*sin
		t := math.Sqrt(denom) * sin / cos
		m, dm := p.l.meridian(phi), (1-p.l.e2)/(denom*math.Sqrt(denom))
		step := (a*(t*m+1) - m - (m*m+b)*t/2) /
			(p.l.e2*2*sin*cos*(m*m+b-2*a*m)/(4*t) + (a-m)*(t*dm-1/(sin*cos)) - dm)
		phi -= step
		if math.Abs(step) < 1e-15 {
			sin, cos = math.Sincos(phi)
			return math.Asin(x*sin/cos*math.Sqrt(1-p.l.e2*sin*sin)) / sin, phi
		}
	}
	return nan, nan
}
