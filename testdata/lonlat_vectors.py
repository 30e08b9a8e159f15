"""Writes lonlat.json: points of projected CRSs, and where PROJ has them.

Every vector is [EPSG code, x, y, longitude, latitude of PROJ, the same two of reference.sampling.lonlat (python/tests) as hexadecimal float64].
The package shuffle has to have the bits of the latter, and both have to be near the former.

    PYTHONPATH=python/src:python/tests python testdata/lonlat_vectors.py > testdata/lonlat.json
"""

import json
import random

from rasterio.warp import transform

from reference.sampling import lonlat

POINTS = [
    (32631, 166021.44, 0.0), (32631, 833978.56, 0.0), (32719, 500000.0, 10000000.0), (32719, 399960.0, 8000040.0),
    (32601, 166100.5, 100.25), (32760, 833900.0, 9999000.0), (32633, 499980.0, 9000000.0), (32733, 600000.0, 1200000.0),
    (25832, 691875.6, 5334765.1), (26910, 550000.0, 4180000.0), (32618, -200000.0, 5000000.0), (32618, 1200000.0, 5000000.0),
    (3857, -20037508.0, -20037508.0), (3857, 1113194.9, 6446275.8), (3857, 0.0, 19000000.0), (4326, -71.25, -33.5), (4258, 10.5, 48.25),
]  # fmt: skip


def main() -> None:
    """Prints the vectors."""
    r = random.Random(1)
    points = list(POINTS)
    for _ in range(60):
        north = r.random() < 0.5
        y = r.uniform(0, 9.2e6)
        points.append(
            (
                (32600 if north else 32700) + r.randint(1, 60),
                r.uniform(1e5, 9e5),
                y if north else 1e7 - y,
            )
        )
    lines = []
    for epsg, x, y in points:
        (lon,), (lat,) = transform(f"EPSG:{epsg}", "EPSG:4326", [x], [y])
        ours = lonlat(epsg, x, y)
        assert ours is not None
        lines.append(json.dumps([epsg, x, y, lon, lat, ours[0].hex(), ours[1].hex()]))
    print("[" + ",\n".join(lines) + "]")


main()
