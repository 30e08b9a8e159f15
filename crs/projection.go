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
	p := &tmerc{l: l, radius: l.a * k * l.rectifying()}
	p.alpha = [6]float64{
		n * (1./2 + n*(-2./3+n*(5./16+n*(41./180+n*(-127./288+n*7891./37800))))),
		n * n * (13./48 + n*(-3./5+n*(557./1440+n*(281./630-n*1983433./1935360)))),
		n * n * n * (61./240 + n*(-103./140+n*(15061./26880+n*167603./181440))),
		n * n * n * n * (49561./161280 + n*(-179./168+n*6601661./7257600)),
		n * n * n * n * n * (34729./80640 - n*3418889./1995840),
		n * n * n * n * n * n * 212378941. / 319334400,
	}
	p.beta = [6]float64{
		n * (1./2 + n*(-2./3+n*(37./96+n*(-1./360+n*(-81./512+n*96199./604800))))),
		n * n * (1./48 + n*(1./15+n*(-437./1440+n*(46./105-n*1118711./3870720)))),
		n * n * n * (17./480 + n*(-37./840+n*(-209./4480+n*5569./90720))),
		n * n * n * n * (4397./161280 + n*(-11./504-n*830251./7257600)),
		n * n * n * n * n * (4583./161280 - n*108847./3991680),
		n * n * n * n * n * n * 20648693. / 638668800,
	}
	_, p.origin = p.forward(0, phi0)
	return p
}

// series sums c[j] sin 2(j+1)ζ of a complex ζ = xi + i eta by Clenshaw's rule.
func series(c *[6]float64, xi, eta float64) (re, im float64) {
	s, cos := math.Sincos(2 * xi)
	sh, ch := math.Sinh(2*eta), math.Cosh(2*eta)
	ar, ai := 2*cos*ch, -2*s*sh // 2 cos 2ζ
	var r0, i0, r1, i1 float64
	for j := len(c) - 1; j >= 0; j-- {
		r0, i0, r1, i1 = ar*r0-ai*i0-r1+c[j], ar*i0+ai*r0-i1, r0, i0
	}
	sr, si := s*ch, cos*sh // sin 2ζ
	return r0*sr - i0*si, r0*si + i0*sr
}

func (p *tmerc) forward(lam, phi float64) (x, y float64) {
	tau := p.l.conformal(phi)
	s, c := math.Sincos(lam)
	xi, eta := math.Atan2(tau, c), math.Asinh(s/math.Hypot(tau, c))
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
	s, c := math.Sincos(xi)
	sh := math.Sinh(eta)
	return math.Atan2(sh, c), p.l.fromConformal(s / math.Hypot(sh, c))
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

// flat returns the point at longitude lam on the parallel of radius r.
func (c *cone) flat(lam, r float64) (x, y float64) {
	sin, cos := math.Sincos(c.n * lam)
	return r * sin, c.origin - r*cos
}

// polar is the inverse of flat. The longitude of the apex, where r is 0, is undefined.
func (c *cone) polar(x, y float64) (lam, r float64) {
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

func newLCC(l *ellipsoid, k, phi0, phi1, phi2 float64) *lcc {
	p := &lcc{l: l, cone: cone{n: math.Sin(phi1)}}
	if math.Abs(phi1-phi2) > 1e-10 {
		p.n = math.Log(l.m(phi1)/l.m(phi2)) / (l.isometric(phi2) - l.isometric(phi1))
	}
	p.f = l.a * k * l.m(phi1) / p.n * math.Exp(p.n*l.isometric(phi1))
	p.origin = p.radius(phi0)
	return p
}

func (p *lcc) radius(phi float64) float64 {
	if math.Abs(phi) >= quarter && (phi > 0) == (p.n > 0) {
		return 0
	}
	return p.f * math.Exp(-p.n*p.l.isometric(phi))
}

func (p *lcc) forward(lam, phi float64) (x, y float64) { return p.flat(lam, p.radius(phi)) }

func (p *lcc) inverse(x, y float64) (lam, phi float64) {
	lam, r := p.polar(x, y)
	if r == 0 {
		return 0, math.Copysign(quarter, p.n)
	}
	return lam, p.l.fromIsometric(-math.Log(r/p.f) / p.n)
}

// aea is Albers' equal-area conic projection (EPSG method 9822; Snyder 14-1 to 14-19).
type aea struct {
	cone
	l *ellipsoid
	c float64
}

func newAEA(l *ellipsoid, phi0, phi1, phi2 float64) *aea {
	p := &aea{l: l, cone: cone{n: math.Sin(phi1)}}
	m1, q1 := l.m(phi1), l.q(math.Sin(phi1))
	if math.Abs(phi1-phi2) > 1e-10 {
		m2, q2 := l.m(phi2), l.q(math.Sin(phi2))
		p.n = (m1*m1 - m2*m2) / (q2 - q1)
	}
	p.c = m1*m1 + p.n*q1
	p.origin = p.radius(phi0)
	return p
}

func (p *aea) radius(phi float64) float64 {
	return p.l.a * math.Sqrt(p.c-p.n*p.l.q(math.Sin(phi))) / p.n
}

func (p *aea) forward(lam, phi float64) (x, y float64) { return p.flat(lam, p.radius(phi)) }

func (p *aea) inverse(x, y float64) (lam, phi float64) {
	lam, r := p.polar(x, y)
	r = r * p.n / p.l.a
	q := (p.c - r*r) / p.n
	if r == 0 {
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

func newLAEA(l *ellipsoid, phi0 float64) *laea {
	p := &laea{l: l, phi0: phi0, radius: l.a * math.Sqrt(l.qp/2), d: 1}
	p.sin0, p.cos0 = p.beta(phi0)
	if !p.polar() {
		p.d = l.a * l.m(phi0) / (p.radius * p.cos0)
	}
	return p
}

func (p *laea) polar() bool { return math.Abs(math.Abs(p.phi0)-quarter) < 1e-10 }

// beta returns sine and cosine of the authalic latitude.
func (p *laea) beta(phi float64) (s, c float64) {
	d := p.l.qLeft(math.Abs(phi))
	return math.Copysign(1-d/p.l.qp, phi), math.Sqrt(d*(2*p.l.qp-d)) / p.l.qp
}

func (p *laea) forward(lam, phi float64) (x, y float64) {
	s, c := math.Sincos(lam)
	if p.polar() {
		sign := math.Copysign(1, p.phi0)
		r := p.l.a * math.Sqrt(p.l.qLeft(sign*phi))
		return r * s, -sign * r * c
	}
	sb, cb := p.beta(phi)
	b := p.radius * math.Sqrt(2/(1+p.sin0*sb+p.cos0*cb*c))
	return b * p.d * cb * s, b / p.d * (p.cos0*sb - p.sin0*cb*c)
}

func (p *laea) inverse(x, y float64) (lam, phi float64) {
	if p.polar() {
		sign := math.Copysign(1, p.phi0)
		r := math.Hypot(x, y) / p.l.a
		return math.Atan2(x, -sign*y), sign * p.l.fromQLeft(r*r)
	}
	x, y = x/p.d, y*p.d
	r := math.Hypot(x, y)
	if r == 0 {
		return 0, p.phi0
	}
	s, c := math.Sincos(2 * math.Asin(r/(2*p.radius)))
	beta := math.Asin(max(-1, min(1, c*p.sin0+y*s*p.cos0/r)))
	if s != s {
		beta = nan
	}
	return math.Atan2(x*s, r*p.cos0*c-y*p.sin0*s), p.l.fromAuthalic(beta)
}

// stere is the polar stereographic projection (EPSG methods 9810 and 9829).
type stere struct {
	l      *ellipsoid
	sign   float64 // of the pole
	factor float64 // of exp(-isometric latitude), in metres
}

func newStere(l *ellipsoid, south bool, k, phiTS float64) *stere {
	p := &stere{l: l, sign: 1}
	if south {
		p.sign = -1
	}
	if phiTS != 0 && math.Abs(phiTS) < quarter-1e-10 {
		phi := math.Abs(phiTS)
		p.factor = l.a * l.m(phi) * math.Exp(l.isometric(phi))
	} else {
		e := l.e
		p.factor = 2 * l.a * k / math.Sqrt(math.Pow(1+e, 1+e)*math.Pow(1-e, 1-e))
	}
	return p
}

func (p *stere) forward(lam, phi float64) (x, y float64) {
	r := 0.0
	if p.sign*phi < quarter {
		r = p.factor * math.Exp(-p.l.isometric(p.sign*phi))
	}
	s, c := math.Sincos(lam)
	return r * s, -p.sign * r * c
}

func (p *stere) inverse(x, y float64) (lam, phi float64) {
	r := math.Hypot(x, y)
	if r == 0 {
		return 0, p.sign * quarter
	}
	return math.Atan2(x, -p.sign*y), p.sign * p.l.fromIsometric(-math.Log(r/p.factor))
}

// sterea is the oblique stereographic projection by way of Gauss' conformal sphere (EPSG method 9809).
type sterea struct {
	l          *ellipsoid
	n, logC    float64
	diameter   float64
	sin0, cos0 float64
}

func newSterea(l *ellipsoid, k, phi0 float64) *sterea {
	s, c := math.Sincos(phi0)
	w := 1 - l.e2*s*s
	p := &sterea{l: l, n: math.Sqrt(1 + l.e2*c*c*c*c/(1-l.e2))}
	p.diameter = 2 * k * l.a * math.Sqrt(1-l.e2) / w
	chi := math.Tanh(p.n * l.isometric(phi0))
	p.logC = math.Log((p.n+s)*(1-chi)/((p.n-s)*(1+chi))) / 2
	p.sin0 = math.Tanh(p.logC + p.n*l.isometric(phi0))
	p.cos0 = math.Sqrt(1 - p.sin0*p.sin0)
	return p
}

func (p *sterea) forward(lam, phi float64) (x, y float64) {
	t := p.logC + p.n*p.l.isometric(phi)
	sc, cc := math.Tanh(t), 1/math.Cosh(t)
	s, c := math.Sincos(p.n * lam)
	b := p.diameter / (1 + sc*p.sin0 + cc*p.cos0*c)
	return b * cc * s, b * (sc*p.cos0 - cc*p.sin0*c)
}

func (p *sterea) inverse(x, y float64) (lam, phi float64) {
	r := math.Hypot(x, y)
	if r == 0 {
		return 0, p.l.fromIsometric((math.Atanh(p.sin0) - p.logC) / p.n)
	}
	s, c := math.Sincos(2 * math.Atan(r/p.diameter))
	chi := c*p.sin0 + y*s*p.cos0/r
	return math.Atan2(x*s, r*p.cos0*c-y*p.sin0*s) / p.n, p.l.fromIsometric((math.Atanh(chi) - p.logC) / p.n)
}

// somerc is Switzerland's oblique Mercator projection (swisstopo, Formulas and constants, 2016):
// EPSG method 9815 with an azimuth of 90 degrees.
type somerc struct {
	l            *ellipsoid
	c, k, radius float64
	sin0, cos0   float64
}

func newSomerc(l *ellipsoid, k, phi0 float64) *somerc {
	s, c := math.Sincos(phi0)
	p := &somerc{l: l, c: math.Sqrt(1 + l.e2*c*c*c*c/(1-l.e2))}
	p.sin0 = s / p.c
	p.cos0 = math.Sqrt(1 - p.sin0*p.sin0)
	p.k = math.Atanh(p.sin0) - p.c*l.isometric(phi0)
	p.radius = k * l.a * math.Sqrt(1-l.e2) / (1 - l.e2*s*s)
	return p
}

func (p *somerc) forward(lam, phi float64) (x, y float64) {
	t := p.c*p.l.isometric(phi) + p.k
	sb, cb := math.Tanh(t), 1/math.Cosh(t)
	s, c := math.Sincos(p.c * lam)
	return p.radius * math.Atan2(cb*s, p.sin0*sb+p.cos0*cb*c), p.radius * math.Atanh(p.cos0*sb-p.sin0*cb*c)
}

func (p *somerc) inverse(x, y float64) (lam, phi float64) {
	sb, cb := math.Tanh(y/p.radius), 1/math.Cosh(y/p.radius)
	s, c := math.Sincos(x / p.radius)
	return math.Atan2(cb*s, p.cos0*cb*c-p.sin0*sb) / p.c,
		p.l.fromIsometric((math.Atanh(p.cos0*sb+p.sin0*cb*c) - p.k) / p.c)
}

// omerc is the Hotine oblique Mercator projection (EPSG methods 9812, variant A, and 9815, variant B).
type omerc struct {
	l                    *ellipsoid
	a, b, logH, lam0, uc float64
	sin0, cos0           float64 // of the azimuth at the equator
	sinC, cosC           float64 // of the angle of the rectified grid
}

func newOMerc(l *ellipsoid, k, phi, alpha, gamma float64, variantA bool) *omerc {
	s, c := math.Sincos(phi)
	w := 1 - l.e2*s*s
	p := &omerc{l: l, b: math.Sqrt(1 + l.e2*c*c*c*c/(1-l.e2))}
	p.a = l.a * p.b * k * math.Sqrt(1-l.e2) / w
	d := max(1, p.b*math.Sqrt(1-l.e2)/(c*math.Sqrt(w)))
	root := math.Copysign(math.Sqrt(d*d-1), phi)
	f := d + root
	p.logH = math.Log(f) - p.b*l.isometric(phi)
	p.sin0 = math.Sin(alpha) / d
	p.cos0 = math.Sqrt(1 - p.sin0*p.sin0)
	p.lam0 = -math.Asin((f-1/f)/2*p.sin0/p.cos0) / p.b
	p.sinC, p.cosC = math.Sincos(gamma)
	if !variantA {
		if math.Abs(math.Abs(alpha)-quarter) < 1e-10 {
			p.uc = -p.a * p.lam0
		} else {
			p.uc = p.a / p.b * math.Atan2(math.Abs(root), math.Cos(alpha))
			p.uc = math.Copysign(p.uc, phi)
		}
	}
	return p
}

func (p *omerc) forward(lam, phi float64) (x, y float64) {
	t := p.logH + p.b*p.l.isometric(phi) // Q = exp(t)
	s, c := math.Sincos(p.b * (lam - p.lam0))
	v := -p.a / p.b * math.Atanh((-s*p.cos0+math.Sinh(t)*p.sin0)/math.Cosh(t))
	u := p.a/p.b*math.Atan2(math.Sinh(t)*p.cos0+s*p.sin0, c) - p.uc
	return v*p.cosC + u*p.sinC, u*p.cosC - v*p.sinC
}

func (p *omerc) inverse(x, y float64) (lam, phi float64) {
	v, u := x*p.cosC-y*p.sinC, y*p.cosC+x*p.sinC+p.uc
	t := -p.b * v / p.a
	s, c := math.Sincos(p.b * u / p.a)
	big := (s*p.cos0 + math.Sinh(t)*p.sin0) / math.Cosh(t)
	return p.lam0 - math.Atan2(math.Sinh(t)*p.cos0-s*p.sin0, c)/p.b, p.l.fromIsometric((math.Atanh(big) - p.logH) / p.b)
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
		lo, hi := -quarter, quarter
		for range 60 {
			f := 2*theta + math.Sin(2*theta) - want
			if f == 0 {
				break
			}
			if f > 0 {
				hi = theta
			} else {
				lo = theta
			}
			next := theta - f/(2+2*math.Cos(2*theta))
			if !(next > lo && next < hi) {
				next = (lo + hi) / 2
			}
			if next == theta {
				break
			}
			theta = next
		}
	}
	s, c := math.Sincos(theta)
	return 2 * math.Sqrt2 / math.Pi * p.radius * lam * c, math.Sqrt2 * p.radius * s
}

func (p *moll) inverse(x, y float64) (lam, phi float64) {
	theta := math.Asin(clampQ(y / (math.Sqrt2 * p.radius)))
	c := math.Cos(theta)
	phi = math.Asin(clampQ((2*theta + math.Sin(2*theta)) / math.Pi))
	if c < 1e-12 {
		return 0, phi
	}
	return math.Pi * x / (2 * math.Sqrt2 * p.radius * c), phi
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
	s, c := math.Sincos(phi)
	cot := c / (s * math.Sqrt(1-p.l.e2*s*s))
	half := math.Sin(lam * s / 2)
	return p.l.a * cot * math.Sin(lam*s), p.l.a * (p.l.meridian(phi) - p.origin + cot*2*half*half)
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
		s, c := math.Sincos(phi)
		w := 1 - p.l.e2*s*s
		t := math.Sqrt(w) * s / c
		m, dm := p.l.meridian(phi), (1-p.l.e2)/(w*math.Sqrt(w))
		step := (a*(t*m+1) - m - (m*m+b)*t/2) /
			(p.l.e2*2*s*c*(m*m+b-2*a*m)/(4*t) + (a-m)*(t*dm-1/(s*c)) - dm)
		phi -= step
		if math.Abs(step) < 1e-15 {
			s, c = math.Sincos(phi)
			return math.Asin(x*s/c*math.Sqrt(1-p.l.e2*s*s)) / s, phi
		}
	}
	return nan, nan
}
