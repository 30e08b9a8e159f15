"""Windows that rasterio.warp makes, for the tests of package warp.

    pip install rasterio numpy pyproj
    python internal/crs/warp/testdata/warps.py > internal/crs/warp/testdata/warps.json   small ones, for TestWarps
    python internal/crs/warp/testdata/warps.py FOLDER [TIFF...]                 larger ones, for TestLikeRasterio: in FOLDER

A case has a window and a raster, each [EPSG code, transform, height, width], a kernel (0 nearest, 1 bilinear, 2 antialias), the
value for missing pixels, and rasterio's pixels. Kernel 2 is GDAL's bilinear, which is a tent as wide as the coarser of both
grids; for 1 its width is set to one pixel, for 2 to what package warp takes. GDAL computes every place exactly here (tolerance 0). In FOLDER, pixels are in files
of their own. With TIFFs, a case also has the seconds of processor time that rasterio takes with its own tolerance, on one thread.
"""

import json
import sys
import time
import warnings
from pathlib import Path

import numpy as np
import rasterio
from affine import Affine
from pyproj import Transformer
from rasterio.warp import Resampling, reproject

warnings.filterwarnings("ignore")


def image(h, w):
    """Returns continuous pixels, in whole numbers: TestWarps has the same formula."""
    y, x = np.mgrid[0:h, 0:w].astype(np.int64)
    return (abs((3 * y + 2 * x) % 200 - 100) * 10 + abs((5 * x - y) % 600 - 300) * 4 + 1).astype(np.uint16)


def place(code, lon, lat, size, h, w, turn=0.0):
    """Returns a grid around a place: its code, transform, height and width."""
    x, y = Transformer.from_crs(4326, code, always_xy=True).transform(lon, lat)
    if rasterio.CRS.from_epsg(code).is_geographic:
        size /= 111_320
    t = Affine.translation(x, y) * Affine.rotation(turn) * Affine.scale(size, -size) * Affine.translation(-w / 2, -h / 2)
    return [code, list(t.to_gdal()), h, w]


def scales(window, raster):
    """Returns pixels of the window for one of the raster along x and y, 1 at most: the mean at the middle of the window."""
    to = Transformer.from_crs(window[0], raster[0], always_xy=True)
    x, y = window[3] / 2, window[2] / 2
    ground = [Affine.from_gdal(*window[1]) * p for p in ((x - 2, y), (x + 2, y), (x, y - 2), (x, y + 2))]
    a, b, c, d = (~Affine.from_gdal(*raster[1]) * to.transform(*p) for p in ground)
    return [min(1, 4 / float(np.hypot(b[i] - a[i], d[i] - c[i]))) for i in range(2)]


def warp(window, raster, kernel, pixels, nodata, out, **options):
    """Calls rasterio."""
    if kernel == 1:
        options |= {"XSCALE": 1, "YSCALE": 1}
    elif kernel == 2:
        x, y = scales(window, raster)
        options |= {"XSCALE": x, "YSCALE": y}
    reproject(
        pixels, out, src_transform=Affine.from_gdal(*raster[1]), src_crs=f"EPSG:{raster[0]}",
        dst_transform=Affine.from_gdal(*window[1]), dst_crs=f"EPSG:{window[0]}", src_nodata=nodata, dst_nodata=nodata,
        resampling=Resampling.nearest if kernel == 0 else Resampling.bilinear, num_threads=1, **options,
    )  # fmt: skip
    return out


def small():
    """Yields cases."""
    for window, raster, kernels in [
        (place(32632, 12, 50, 10, 16, 20), place(32633, 12, 50, 10, 40, 44), (0, 1)),
        (place(32632, 12, 50, 10, 30, 24), place(32633, 12.001, 50.001, 10, 20, 24), (0, 1)),
        (place(32633, 15, 50, 20, 16, 16), place(32633, 15, 50, 10, 40, 40), (0, 1, 2)),
        (place(32633, 15, 50, 3, 30, 30), place(32633, 15, 50, 10, 12, 14), (0, 1, 2)),
        (place(32633, 15, 50, 10, 20, 24, 30), place(32633, 15, 50, 10, 40, 40), (0, 1)),
        (place(3035, 12, 50, 30, 16, 16), place(32633, 12, 50, 10, 80, 80), (0, 1, 2)),
        (place(3857, -60, -10, 20, 20, 20), place(32720, -60, -10, 10, 60, 60), (0, 1)),
        (place(4326, 27, 70, 20, 16, 20), place(32635, 27, 70, 20, 60, 60), (0, 1)),
        (place(32635, 27, 70, 20, 16, 20), place(4326, 27, 70, 20, 30, 90), (0, 1)),
        (place(3413, -45, 75, 100, 20, 20), place(32623, -45, 75, 100, 40, 40), (0, 1)),
        (place(5070, -105, 40, 30, 20, 20), place(32613, -105, 40, 30, 40, 40), (0, 1)),
        (place(3031, 20, -80, 5000, 20, 20), place(4326, 20, -80, 5000, 60, 300), (0, 1)),
    ]:
        for kernel in kernels:
            for nodata in (None, 0) if kernel == 0 else (None,):
                pixels = image(*raster[2:])
                if nodata is not None:
                    pixels[5:9, 3:30] = nodata
                # Pixels off the raster become -1.
                out = np.full(window[2:], -1, np.float32)
                source = pixels.astype(np.float32)
                warp(window, raster, kernel, source, -1, out, tolerance=0)
                rows = [[round(float(v), 2) for v in row] for row in out]
                yield {"window": window, "raster": raster, "kernel": kernel, "nodata": nodata, "out": rows}


def scenery(side):
    """Returns pixels whose spectrum falls as that of a photograph does."""
    r = np.random.default_rng(1)
    f = np.hypot(*np.meshgrid(np.fft.fftfreq(side), np.fft.fftfreq(side)))
    f[0, 0] = 1
    v = np.fft.ifft2(np.fft.fft2(r.standard_normal((side, side))) / f**1.1).real
    return ((v - v.min()) / (v.max() - v.min()) * 9999 + 1).astype(np.uint16)


def large(folder, tiffs):
    """Writes cases."""
    rounds = 3 if tiffs else 0
    rasters = [("scenery", scenery(1300), place(32633, 12, 50, 10, 1300, 1300))]
    for path in tiffs:
        with rasterio.open(path) as d:
            if d.crs and d.crs.to_epsg() and d.dtypes[0] in ("uint8", "uint16") and min(d.shape) > 100:
                rasters.append((Path(path).stem, d.read(1).astype(np.uint16), [d.crs.to_epsg(), list(d.transform.to_gdal()), *d.shape]))
    cases = []
    for name, pixels, raster in rasters:
        code, t, h, w = raster
        lon, lat = Transformer.from_crs(code, 4326, always_xy=True).transform(t[0] + w / 2 * t[1], t[3] + h / 2 * t[5])
        side, size = (256, t[1]) if h < 1300 else (1024, t[1]) if h < 2600 else (2048, t[1])
        windows = [place(c, lon, lat, size, side, side) for c in (32632, 3035, 3857, 4326)]
        windows += [place(32632, lon, lat, 2.5 * size, side // 3, side // 3), place(32632, lon, lat, size, 256, 256)]
        for window in windows:
            for kernel in range(3):
                source = pixels.astype(np.float32)
                exact = warp(window, raster, kernel, source, -1, np.full(window[2:], -1, np.float32), tolerance=0)
                seconds = []
                for _ in range(rounds):
                    out = np.full(window[2:], -1, np.float32)
                    begin = time.process_time()
                    warp(window, raster, kernel, source, -1, out)
                    seconds.append(time.process_time() - begin)
                native = []
                for _ in range(rounds):
                    out = np.zeros(window[2:], np.uint16)
                    begin = time.process_time()
                    warp(window, raster, kernel, pixels, None, out)
                    native.append(time.process_time() - begin)
                files = [f"{len(cases)}.src", f"{len(cases)}.dst"]
                (folder / files[0]).write_bytes(pixels.tobytes())
                (folder / files[1]).write_bytes(exact.tobytes())
                cases.append({"name": name, "window": window, "raster": raster, "kernel": kernel, "files": files,
                              "seconds": min(seconds, default=0), "native": min(native, default=0)})  # fmt: skip
    (folder / "cases.json").write_text(json.dumps(cases))


if __name__ == "__main__":
    if len(sys.argv) > 1:
        large(Path(sys.argv[1]), sys.argv[2:])
    else:
        print("[" + ",\n".join(json.dumps(c, separators=(",", ":")) for c in small()) + "]")
