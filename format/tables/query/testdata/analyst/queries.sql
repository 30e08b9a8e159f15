-- Filters of metadata.
SELECT id FROM data WHERE cloud_cover < 10
SELECT id, cloud_cover FROM data WHERE cloud_cover BETWEEN 5 AND 20 AND split = 'train'
SELECT id FROM data WHERE region IN ('andes', 'amazon') AND cloud_cover < 30 ORDER BY cloud_cover, id LIMIT 10
SELECT count(*) FROM data WHERE cloud_cover IS NULL
SELECT id FROM data WHERE id LIKE 'tile_01%'
SELECT id FROM data WHERE platform ILIKE '%SENTINEL%' AND NOT is_night
SELECT id FROM data WHERE left(id, 6) = 'tile_0'
SELECT id FROM data WHERE regexp_matches(id, '^tile_0[0-4]')
SELECT id FROM data WHERE datetime >= '2021-03-01' AND datetime < '2021-06-01'
SELECT id FROM data WHERE datetime BETWEEN TIMESTAMP '2021-01-01' AND TIMESTAMP '2021-12-31 23:59:59'
SELECT id FROM data WHERE date >= DATE '2022-01-01'
SELECT id FROM data WHERE date > '2021-06-30'::DATE
SELECT id FROM data WHERE year(datetime) = 2021 AND month(datetime) IN (6, 7, 8)
SELECT id FROM data WHERE extract(month FROM datetime) BETWEEN 6 AND 8
SELECT id FROM data WHERE date_part('year', datetime) = 2020
SELECT id FROM data WHERE lat BETWEEN -20 AND 0 AND lon BETWEEN -80 AND -50
SELECT id FROM data WHERE abs(lat) < 23.5
SELECT id FROM data WHERE CAST(quality AS INTEGER) > 80
SELECT id FROM data WHERE quality::INT >= 50
SELECT id FROM data WHERE TRY_CAST(note AS DOUBLE) > 0.5
SELECT id FROM data WHERE coalesce(cloud_cover, 100) < 20
SELECT id FROM data WHERE n_valid * 1.0 / (width * height) > 0.9
SELECT id FROM data WHERE n_valid > 0.5 * width * height
SELECT id FROM data WHERE isnan(ndvi) OR ndvi IS NULL
SELECT id FROM data WHERE len(bands) >= 4 AND list_contains(bands, 'B08')
SELECT id FROM data WHERE bands[1] = 'B02'
SELECT id FROM data WHERE 'B08' IN bands
SELECT id FROM data WHERE cloud_cover < (SELECT avg(cloud_cover) FROM data)
SELECT id FROM data WHERE cloud_cover <= (SELECT quantile_cont(cloud_cover, 0.1) FROM data)
SELECT id FROM data WHERE region IN (SELECT region FROM data GROUP BY region HAVING count(*) > 20)
SELECT id FROM data WHERE id NOT IN (SELECT id FROM data WHERE split = 'test')
SELECT id FROM data WHERE label = 'water' AND file_size > 1e6
SELECT id FROM data WHERE split <> 'test' AND greatest(cloud_cover, 100 - sun_elevation) < 60
SELECT id FROM data WHERE contains(id, '_01') OR starts_with(id, 'tile_2')
SELECT id FROM data WHERE "stac:crs" = 'EPSG:32719'
SELECT id FROM data WHERE split_part("stac:crs", ':', 2)::INT = epsg
SELECT id FROM data WHERE strftime(datetime, '%Y-%m') = '2021-07'
SELECT id FROM data WHERE date_trunc('month', datetime) = TIMESTAMP '2021-07-01'
SELECT id FROM data WHERE datetime::DATE = date
SELECT id FROM data WHERE date - DATE '2020-01-01' < 100
SELECT id FROM data WHERE datetime > TIMESTAMP '2021-01-01' + INTERVAL 90 DAY
SELECT id FROM data WHERE date BETWEEN DATE '2021-01-01' AND DATE '2021-01-01' + INTERVAL 3 MONTH
SELECT id FROM data WHERE epsg % 100 BETWEEN 1 AND 60 AND epsg // 100 = 327
SELECT id FROM data WHERE (cloud_cover < 10 OR snow < 0.1) AND NOT (class IN (0, 255))
SELECT id FROM data WHERE CASE WHEN is_night THEN cloud_cover < 5 ELSE cloud_cover < 20 END
SELECT id FROM data WHERE regexp_matches(label, 'forest|water')
SELECT id FROM data WHERE label SIMILAR TO 'wa.*'
SELECT id FROM data WHERE substring(id FROM 6 FOR 3)::INT < 50
SELECT id FROM data WHERE right(id, 1) IN ('0', '5')
SELECT id FROM data WHERE dayofyear(date) BETWEEN 152 AND 243
-- Columns that are computed.
SELECT left(id, 2) FROM data
SELECT id, substring(id, 6, 3) AS n FROM data
SELECT substring(id from 1 for 4) FROM data
SELECT trim(both '_' from substr(id, 5)) AS t FROM data
SELECT id, round(cloud_cover, 1) AS cc FROM data ORDER BY id
SELECT id, round(cloud_cover) FROM data
SELECT id, floor(cloud_cover / 10) * 10 AS bin FROM data
SELECT id, ceil(lon) AS lon, floor(lat) AS lat FROM data
SELECT id, cloud_cover / 100 AS frac FROM data
SELECT id, cloud_cover * 0.01 AS frac FROM data
SELECT id, rank * 1.5 AS r FROM data
SELECT id, 1 - cloud_cover / 100.0 AS clear FROM data
SELECT id, 0.5 AS w, 3 AS k, 'x' AS t FROM data LIMIT 3
SELECT id, file_size / 1024 / 1024 AS mb FROM data
SELECT id, round(file_size / 1048576.0, 2) AS mb FROM data
SELECT id, n_valid::DOUBLE / (width * height) AS valid FROM data
SELECT id, CAST(cloud_cover AS INTEGER) AS cc FROM data
SELECT id, cloud_cover::INT FROM data
SELECT id, CAST(class AS VARCHAR) AS c FROM data
SELECT id, class::VARCHAR || '_' || label AS key FROM data
SELECT id, concat(region, '/', split, '/', id, '.tif') AS path FROM data
SELECT concat_ws('-', platform, region, class) FROM data
SELECT id, upper(region), length(label) FROM data
SELECT replace(id, 'tile_', '') AS n FROM data
SELECT id, regexp_extract(id, '([0-9]+)', 1)::INT AS n FROM data
SELECT regexp_replace(id, '[0-9]+', '#') AS pattern FROM data
SELECT split_part(platform, '-', 1) AS family FROM data
SELECT string_split(platform, '-')[1] AS family FROM data
SELECT id, CASE WHEN cloud_cover < 10 THEN 'clear' WHEN cloud_cover < 50 THEN 'partly' ELSE 'cloudy' END AS sky FROM data
SELECT id, CASE label WHEN 'water' THEN 1 WHEN 'forest' THEN 2 ELSE 0 END AS code FROM data
SELECT CASE WHEN lat > 0 THEN 'N' ELSE 'S' END FROM data
SELECT id, if(is_night, 'night', 'day') AS time FROM data
SELECT id, nullif(class, 255) AS class FROM data
SELECT id, ifnull(region, 'unknown') AS region FROM data
SELECT id, coalesce(region, label, 'none') FROM data
SELECT id, least(cloud_cover, snow) AS l, greatest(cloud_cover, 50) AS g FROM data
SELECT id, year(datetime) AS y, month(datetime) AS m, day(datetime) AS d, hour(datetime) AS h FROM data
SELECT id, extract(year FROM datetime), extract('doy' FROM datetime) FROM data
SELECT id, date_part('week', datetime) AS week, quarter(datetime) AS q, dayofweek(date) AS dow FROM data
SELECT id, strftime(datetime, '%Y-%m-%dT%H:%M:%SZ') AS iso FROM data
SELECT id, strftime(date, '%d/%m/%Y') FROM data
SELECT id, date_trunc('month', datetime) AS month FROM data
SELECT id, date_trunc('day', date) FROM data
SELECT id, datetime::DATE AS day, datetime::TIME AS clock FROM data
SELECT id, strptime(day_text, '%Y-%m-%d') AS day FROM data
SELECT id, day_text::DATE AS day FROM data
SELECT id, CAST(day_text AS TIMESTAMP) AS t FROM data
SELECT id, date_diff('day', DATE '2020-01-01', date) AS days FROM data
SELECT id, datediff('month', date, DATE '2023-01-01') FROM data
SELECT id, date - DATE '2020-01-01' AS days FROM data
SELECT id, date + 30 AS later FROM data
SELECT id, datetime + INTERVAL '1 month' AS next FROM data
SELECT id, epoch(datetime) AS seconds FROM data
SELECT id, monthname(date) AS m, dayname(date) AS d FROM data
SELECT id, last_day(date) FROM data
SELECT id, make_date(year(date), 1, 1) AS first FROM data
SELECT sqrt(cloud_cover), ln(file_size), log10(file_size), exp(ndvi), pow(snow, 2) FROM data
SELECT id, cos(radians(lat)) * 111.32 AS km FROM data
SELECT id, sign(lat), trunc(lon), lat ** 2, sqrt(power(lon, 2) + power(lat, 2)) AS r FROM data
SELECT id, width || 'x' || height AS size FROM data
SELECT id, printf('%03d', class) AS c FROM data
SELECT id, lpad(class::VARCHAR, 3, '0') AS c FROM data
SELECT id, format('{}_{}', region, class) FROM data
SELECT * EXCLUDE (bands, note) FROM data LIMIT 5
SELECT * EXCLUDE bands FROM data WHERE rank = 1
SELECT * REPLACE (round(cloud_cover) AS cloud_cover) FROM data LIMIT 5
SELECT COLUMNS('.*_.*') FROM data LIMIT 3
SELECT DISTINCT region, split FROM data ORDER BY ALL
SELECT DISTINCT year(datetime) AS y FROM data ORDER BY y
SELECT DISTINCT ON (region) region, id, cloud_cover FROM data ORDER BY region, cloud_cover, id
SELECT id, bands[1:2] AS first FROM data
SELECT id, array_to_string(bands, ',') AS b FROM data
SELECT typeof(cloud_cover), typeof(class), typeof(datetime) FROM data LIMIT 1
SELECT id, position('_' IN id) AS p, instr(id, '0') AS i, reverse(id) AS r FROM data LIMIT 5
SELECT id, cloud_cover > 50 AS cloudy, NOT is_night AS day FROM data
SELECT id, row_number() OVER (PARTITION BY region ORDER BY cloud_cover, id) AS r FROM data
SELECT id, cloud_cover - avg(cloud_cover) OVER () AS anomaly FROM data
SELECT id FROM data ORDER BY random() LIMIT 10
SELECT id, hash(id) % 10 AS fold FROM data
-- Counts and statistics.
SELECT count(*) FROM data
SELECT count(*), count(cloud_cover), count(DISTINCT region) FROM data
SELECT split, count(*) AS n FROM data GROUP BY split ORDER BY n DESC
SELECT region, split, count(*) FROM data GROUP BY ALL ORDER BY ALL
SELECT label, avg(cloud_cover) AS m, stddev(cloud_cover) AS s FROM data GROUP BY label ORDER BY label
SELECT class, min(ndvi), max(ndvi), avg(ndvi) FROM data WHERE NOT isnan(ndvi) GROUP BY class ORDER BY class
SELECT region, median(cloud_cover) FROM data GROUP BY region ORDER BY region
SELECT quantile_cont(cloud_cover, 0.5), quantile_cont(cloud_cover, 0.9), quantile_disc(cloud_cover, 0.9) FROM data
SELECT region, quantile_cont(cloud_cover, [0.25, 0.5, 0.75]) AS q FROM data GROUP BY region ORDER BY region
SELECT percentile_cont(0.9) WITHIN GROUP (ORDER BY cloud_cover) AS p90 FROM data
SELECT quantile(cloud_cover, 0.25) AS q, approx_quantile(cloud_cover, 0.5) IS NOT NULL AS a FROM data
SELECT year(datetime) AS y, month(datetime) AS m, count(*) AS n FROM data GROUP BY y, m ORDER BY y, m
SELECT date_trunc('month', datetime) AS month, count(*) AS n FROM data GROUP BY 1 ORDER BY 1
SELECT strftime(datetime, '%Y-%m') AS month, count(*) AS n, avg(cloud_cover) AS cc FROM data GROUP BY month ORDER BY month
SELECT extract(year FROM date) AS y, sum(n_valid) AS valid FROM data GROUP BY y ORDER BY y
SELECT quarter(date) AS q, count(*) FILTER (WHERE cloud_cover < 10) AS clear, count(*) AS n FROM data GROUP BY q ORDER BY q
SELECT region, sum(CASE WHEN cloud_cover < 10 THEN 1 ELSE 0 END) AS clear FROM data GROUP BY region ORDER BY region
SELECT region, 100.0 * count(*) FILTER (WHERE cloud_cover < 10) / count(*) AS percent FROM data GROUP BY region ORDER BY region
SELECT region, round(100.0 * count(*) / (SELECT count(*) FROM data), 1) AS percent FROM data GROUP BY region ORDER BY region
SELECT floor(cloud_cover / 10) * 10 AS bin, count(*) AS n FROM data GROUP BY bin ORDER BY bin
SELECT CAST(cloud_cover / 10 AS INTEGER) AS bin, count(*) FROM data GROUP BY 1 ORDER BY 1
SELECT CASE WHEN cloud_cover < 10 THEN 'clear' WHEN cloud_cover < 50 THEN 'partly' ELSE 'cloudy' END AS sky, count(*) AS n FROM data GROUP BY sky ORDER BY sky
SELECT round(lon / 5) * 5 AS x, round(lat / 5) * 5 AS y, count(*) AS n FROM data GROUP BY x, y ORDER BY x, y
SELECT left(platform, 8) AS family, count(*) FROM data GROUP BY family ORDER BY family
SELECT label, count(*) AS n FROM data GROUP BY label HAVING count(*) > 20 ORDER BY n DESC, label
SELECT label, sum(file_size) / 1e9 AS gb FROM data GROUP BY label ORDER BY gb DESC
SELECT label, sum(file_size) AS bytes, round(avg(file_size)) AS mean FROM data GROUP BY label ORDER BY label
SELECT var_samp(ndvi), var_pop(snow), stddev_pop(snow), stddev_samp(cloud_cover) FROM data WHERE NOT isnan(ndvi)
SELECT corr(cloud_cover, snow) AS r, covar_pop(cloud_cover, snow) AS c FROM data
SELECT mode(label), any_value(split), bool_and(is_night), bool_or(is_night) FROM data WHERE split = 'train'
SELECT first(id ORDER BY cloud_cover, id), last(id ORDER BY id) FROM data
SELECT region, arg_min(id, cloud_cover) AS best, min(cloud_cover) FROM data GROUP BY region ORDER BY region
SELECT region, string_agg(DISTINCT label, ',' ORDER BY label) AS labels FROM data GROUP BY region ORDER BY region
SELECT region, list(DISTINCT split) IS NOT NULL AS l FROM data GROUP BY region ORDER BY region
SELECT region, count_if(cloud_cover < 10) AS clear FROM data GROUP BY region ORDER BY region
SELECT platform, min(datetime) AS first, max(datetime) AS last, max(date) - min(date) AS days FROM data GROUP BY platform ORDER BY platform
SELECT approx_count_distinct(region) > 0 AS some FROM data
SELECT label, sum(n_valid) * 100.0 / sum(width * height) AS valid FROM data GROUP BY label ORDER BY label
SELECT rank, avg(cloud_cover)::DECIMAL(10, 2) AS cc FROM data GROUP BY rank ORDER BY rank
SELECT region, label, count(*) FROM data GROUP BY ROLLUP (region, label) ORDER BY ALL
SELECT max(cloud_cover) - min(cloud_cover) AS range, avg(cloud_cover * cloud_cover) - avg(cloud_cover) ** 2 AS var FROM data
SELECT split, avg(len(bands)) AS bands FROM data GROUP BY split ORDER BY split
SELECT unnest(bands) AS band, count(*) FROM data GROUP BY band ORDER BY band
SELECT region, max_by(id, ndvi) AS best FROM data WHERE NOT isnan(ndvi) GROUP BY region ORDER BY region
SELECT histogram(class) FROM data
SUMMARIZE data
-- Queries of queries.
SELECT n, count(*) AS regions FROM (SELECT region, count(*) AS n FROM data GROUP BY region) t GROUP BY n ORDER BY n
SELECT avg(n) FROM (SELECT count(*) AS n FROM data GROUP BY label)
WITH clear AS (SELECT * FROM data WHERE cloud_cover < 10) SELECT region, count(*) AS n FROM clear GROUP BY region ORDER BY region
WITH m AS (SELECT label, avg(cloud_cover) AS cc FROM data GROUP BY label), top AS (SELECT * FROM m ORDER BY cc LIMIT 3) SELECT * FROM top ORDER BY label
WITH m AS (SELECT region, avg(cloud_cover) AS cc FROM data GROUP BY region) SELECT d.id, d.cloud_cover - m.cc AS anomaly FROM data d JOIN m ON d.region = m.region ORDER BY d.id
SELECT id, 'low' AS kind FROM data WHERE cloud_cover < 3 UNION ALL SELECT id, 'high' FROM data WHERE cloud_cover > 97 ORDER BY id
SELECT region FROM data WHERE split = 'train' UNION SELECT region FROM data WHERE split = 'test' ORDER BY region
SELECT region FROM data WHERE split = 'train' EXCEPT SELECT region FROM data WHERE class = 3
SELECT d.id, l.id AS child, l.mean FROM data d JOIN level1 l ON l.parent = d.row WHERE l.kind = 's2' ORDER BY d.id
SELECT d.region, avg(l.mean) AS m FROM data d LEFT JOIN level1 l ON l.parent = d.row GROUP BY d.region ORDER BY d.region
SELECT id FROM data WHERE row IN (SELECT parent FROM level1 WHERE mean > 0.8) ORDER BY id
SELECT id FROM data d WHERE EXISTS (SELECT 1 FROM level1 l WHERE l.parent = d.row AND l.mean > 0.8)
SELECT id FROM (SELECT id, cloud_cover FROM data ORDER BY cloud_cover, id LIMIT 20) WHERE cloud_cover > 1 ORDER BY id
SELECT (SELECT max(datetime) FROM data) AS newest, (SELECT count(*) FROM level1) AS children
SELECT count(*) FROM (SELECT DISTINCT region, label FROM data)
FROM data SELECT id WHERE rank = 2 ORDER BY id
FROM data LIMIT 2
SELECT count(*) FROM data USING SAMPLE 10
SELECT count(*) FROM (SELECT * FROM data USING SAMPLE reservoir(25 ROWS) REPEATABLE (7))
SELECT count(*) BETWEEN 0 AND 240 AS ok FROM data TABLESAMPLE bernoulli(10%) REPEATABLE (1)
PIVOT data ON split USING count(*) GROUP BY region ORDER BY region
SELECT id FROM data JOIN level1 USING (id)
SELECT * FROM (VALUES (1, 'a'), (2, 'b')) t(k, v)
SELECT id, cloud_cover FROM data QUALIFY row_number() OVER (PARTITION BY region ORDER BY cloud_cover, id) = 1 ORDER BY id
