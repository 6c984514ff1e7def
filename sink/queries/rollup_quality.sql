-- Recomputes quality_1m for minutes of one check, as a whole, from rows that each count once.
-- from and to are whole UTC days around the minutes, so that other partitions are not read.
-- ev: one row per interaction and minute: an answer before a failure, then the later one. The
--     position in the log breaks ties, so that the same rows always give the same sums.
-- lab: the share of raters who passed an interaction of the labelling sample.
-- j: both; w and w2 are the weights of a judged and of a labelled row. A failed judgement
--    has s = v = 0 here, so every sum over scores asks for okay.
-- q: the sums. Histograms go through sumMap and are spread over 100 bins once per group: an
--    array of 100 per row took six times as long.
INSERT INTO {{db}}.quality_1m
    (check, check_version, minute, slice_id, slice, stratum, n_ok, n_unscored, n_not_applicable, n_shed, n_error, sw_unscored, sw_shed, sw_error,
     n, x, sw, sw2, swv, sw2v, sws, sw2s, sws2, sw2s2, pi_min, option_names, option_w, option_w2, chosen_w, chosen_w2, hist_n, hist_w,
     n_label, n_label_pending, b0, bf, by, d0, df, dff, dy, dyy, dfy, x0, xf, xff, xy, xfy, tp, fp, fn, tn, tp_w, fp_w, fn_w, tn_w,
     brier_w, logloss_w, lab_n, lab_w, lab_wp, lab_wy, latency, input_tokens, output_tokens, cost_nano_usd, computed_at)
WITH ev AS (
    SELECT *, toStartOfMinute(ts) AS minute, 1 / pi AS w, ifNull(toFloat64(score), 0) AS s, ifNull(toFloat64(passed), 0) AS v, status = 'ok' AS okay
    FROM (
        SELECT check, check_version, ts, interaction_id, repeat, slice_id, slice, stratum, pi, status, score, passed, option, option_names AS names, option_probs AS probs, latency_ms, input_tokens AS tin, output_tokens AS tout, cost_nano_usd AS cost
        FROM {{db}}.evaluations
        WHERE check = {check:String} AND ts >= {from:DateTime('UTC')} AND ts < {to:DateTime('UTC')} AND toStartOfMinute(ts) IN {minutes:Array(DateTime('UTC'))}
        ORDER BY check, check_version, toStartOfMinute(ts), interaction_id, repeat, evaluated_at DESC, kafka_topic, kafka_partition, kafka_offset, element, inserted_at DESC
        LIMIT 1 BY check, check_version, toStartOfMinute(ts), interaction_id, repeat
    )
    WHERE repeat = 0
),
lab AS (
    SELECT interaction_id, avg(passed) AS y, any(pi2) AS pi2
    FROM (
        SELECT interaction_id, rater, passed, pi2, deleted, origin
        FROM {{db}}.labels
        WHERE check = {check:String} AND ts >= {from:DateTime('UTC')} AND ts < {to:DateTime('UTC')} AND question = ''
        ORDER BY check, toStartOfMinute(ts), interaction_id, question, rater, revision DESC
        LIMIT 1 BY check, toStartOfMinute(ts), interaction_id, question, rater
    )
    WHERE deleted = 0 AND isNotNull(passed) AND origin = 'sampled'
    GROUP BY interaction_id
),
j AS (
    SELECT ev.*, lab.y AS y, lab.interaction_id != '' AS has_label, okay AND has_label AS l,
           w / if(has_label, lab.pi2, 1) AS w2, least(greatest(s, 1e-6), 1 - 1e-6) AS pc,
           toUInt32(least(greatest(floor(s * 100), 0), 99)) + 1 AS bin
    FROM ev LEFT JOIN lab ON ev.interaction_id = lab.interaction_id
),
q AS (
    SELECT check, check_version, minute, slice_id, any(slice) AS slice, any(stratum) AS stratum,
        countIf(okay) AS n_ok, countIf(status = 'unscored') AS n_unscored, countIf(status = 'not_applicable') AS n_not_applicable, countIf(status = 'shed') AS n_shed, countIf(status = 'error') AS n_error,
        sumIf(w, status = 'unscored') AS sw_unscored, sumIf(w, status = 'shed') AS sw_shed, sumIf(w, status = 'error') AS sw_error,
        countIf(okay) AS n, countIf(okay AND v = 1) AS x,
        sumIf(w, okay) AS sw, sumIf(w * w, okay) AS sw2, sumIf(w * v, okay) AS swv, sumIf(w * w * v, okay) AS sw2v,
        sumIf(w * s, okay) AS sws, sumIf(w * w * s, okay) AS sw2s, sumIf(w * s * s, okay) AS sws2, sumIf(w * w * s * s, okay) AS sw2s2, min(pi) AS pi_min,
        anyIf(names, okay) AS option_names,
        sumForEachIf(arrayMap(p -> p * w, probs), okay) AS option_w, sumForEachIf(arrayMap(p -> p * w * w, probs), okay) AS option_w2,
        sumForEachIf(arrayMap(o -> if(o = option, w, 0.), names), okay) AS chosen_w, sumForEachIf(arrayMap(o -> if(o = option, w * w, 0.), names), okay) AS chosen_w2,
        sumMapIf([bin], [toUInt32(1)], [w], okay) AS h,
        arrayMap(i -> toUInt32(h.2[indexOf(h.1, i)]), range(1, 101)) AS hist_n, arrayMap(i -> h.3[indexOf(h.1, i)], range(1, 101)) AS hist_w,
        countIf(l) AS n_label, countIf(has_label AND NOT okay) AS n_label_pending,
        sumIf(w2, l) AS b0, sumIf(w2 * s, l) AS bf, sumIf(w2 * y, l) AS by,
        sumIf(w2 * w2, l) AS d0, sumIf(w2 * w2 * s, l) AS df, sumIf(w2 * w2 * s * s, l) AS dff, sumIf(w2 * w2 * y, l) AS dy, sumIf(w2 * w2 * y * y, l) AS dyy, sumIf(w2 * w2 * s * y, l) AS dfy,
        sumIf(w * w2, l) AS x0, sumIf(w * w2 * s, l) AS xf, sumIf(w * w2 * s * s, l) AS xff, sumIf(w * w2 * y, l) AS xy, sumIf(w * w2 * s * y, l) AS xfy,
        countIf(l AND v = 1 AND y >= 0.5) AS tp, countIf(l AND v = 1 AND y < 0.5) AS fp, countIf(l AND v = 0 AND y >= 0.5) AS fn, countIf(l AND v = 0 AND y < 0.5) AS tn,
        sumIf(w2, l AND v = 1 AND y >= 0.5) AS tp_w, sumIf(w2, l AND v = 1 AND y < 0.5) AS fp_w, sumIf(w2, l AND v = 0 AND y >= 0.5) AS fn_w, sumIf(w2, l AND v = 0 AND y < 0.5) AS tn_w,
        sumIf(w2 * (s - y) * (s - y), l) AS brier_w, sumIf(-w2 * (y * log(pc) + (1 - y) * log(1 - pc)), l) AS logloss_w,
        sumMapIf([bin], [toUInt32(1)], [w2], [w2 * s], [w2 * y], l) AS g,
        arrayMap(i -> toUInt32(g.2[indexOf(g.1, i)]), range(1, 101)) AS lab_n, arrayMap(i -> g.3[indexOf(g.1, i)], range(1, 101)) AS lab_w,
        arrayMap(i -> g.4[indexOf(g.1, i)], range(1, 101)) AS lab_wp, arrayMap(i -> g.5[indexOf(g.1, i)], range(1, 101)) AS lab_wy,
        quantileTDigestStateIf(0.5)(latency_ms, okay) AS latency,
        sum(tin) AS input_tokens, sum(tout) AS output_tokens, sum(cost) AS cost_nano_usd
    FROM j GROUP BY check, check_version, minute, slice_id
)
SELECT q.* EXCEPT (h, g), {computed_at:DateTime64(3, 'UTC')} FROM q
