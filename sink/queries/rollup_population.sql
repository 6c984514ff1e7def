-- Recomputes population_1m for minutes of one check, as a whole: the furthest count of each
-- cell, summed. The empty check counts interactions, records without one, and dead letters.
INSERT INTO {{db}}.population_1m
SELECT check, check_version, minute, stratum,
    sumIf(n, decision = 'filtered'), sumIf(n, decision = 'not_applicable'), sumIf(n, decision = 'sampled_out'), sumIf(n, decision = 'selected'),
    sumIf(n, decision = 'interaction'), sumIf(n, decision = 'no_interaction'), sumIf(n, decision = 'dead_lettered'),
    {computed_at:DateTime64(3, 'UTC')}
FROM (
    SELECT check, check_version, minute, stratum, decision, n
    FROM {{db}}.population
    WHERE check = {check:String} AND minute IN {minutes:Array(DateTime('UTC'))}
    ORDER BY kafka_topic, kafka_partition, block, segment_from, minute, check, check_version, stratum, decision, reason, pi, epoch, upto_offset DESC
    LIMIT 1 BY kafka_topic, kafka_partition, block, segment_from, minute, check, check_version, stratum, decision, reason, pi, epoch
)
GROUP BY check, check_version, minute, stratum
