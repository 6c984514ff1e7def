-- Tables of Assay on one server. {{db}} is the configured database.
--
-- Every table replaces rows of the same sorting key by the highest version, and remembers
-- the tokens of its last inserts, so that a block sent twice is stored once. Everything is
-- UTC. Statements are idempotent: two processes may run them at once.

CREATE DATABASE IF NOT EXISTS {{db}};

-- What was applied to this database. The first statement, so that a half-applied 0001 can be told.
CREATE TABLE IF NOT EXISTS {{db}}.migrations
(
    version    UInt32,
    name       String,
    variant    LowCardinality(String),
    checksum   FixedString(64),
    applied_at DateTime64(3, 'UTC') DEFAULT now64(3, 'UTC'),
    applied_by LowCardinality(String)
)
ENGINE = ReplacingMergeTree(applied_at)
ORDER BY version
SETTINGS non_replicated_deduplication_window = 1000;

-- One check on one interaction of the log. The key is a pure function of the log and the
-- checks file; the version makes an answer win over shed and error rows (which carry
-- 1970), and the later answer over the earlier.
CREATE TABLE IF NOT EXISTS {{db}}.evaluations
(
    check            LowCardinality(String),
    check_version    LowCardinality(String),
    ts               DateTime64(3, 'UTC') CODEC(DoubleDelta, ZSTD(1)),
    interaction_id   String CODEC(ZSTD(1)),
    repeat           UInt8 DEFAULT 0,
    kafka_topic      LowCardinality(String),
    kafka_partition  UInt32 CODEC(T64, ZSTD(1)),
    kafka_offset     UInt64 CODEC(DoubleDelta, ZSTD(1)),
    element          UInt16 DEFAULT 0 CODEC(T64, ZSTD(1)),
    tenant           LowCardinality(String),
    app              LowCardinality(String),
    model            LowCardinality(String),
    route            LowCardinality(String),
    prompt_version   LowCardinality(String),
    environment      LowCardinality(String),
    slice_id         UInt64 CODEC(ZSTD(1)),
    slice            Map(LowCardinality(String), String) CODEC(ZSTD(1)),
    attributes       Map(LowCardinality(String), String) CODEC(ZSTD(1)),
    stratum          LowCardinality(String),
    pi               Float64 CODEC(ZSTD(1)),
    epoch            UInt32 CODEC(T64, ZSTD(1)),
    status           Enum8('ok' = 1, 'unscored' = 2, 'not_applicable' = 3, 'shed' = 4, 'error' = 5),
    reason           LowCardinality(String),
    score            Nullable(Float32) CODEC(ZSTD(1)),
    passed           Nullable(UInt8) CODEC(ZSTD(1)),
    confidence       Nullable(Float32) CODEC(ZSTD(1)),
    option           LowCardinality(String),
    option_names     Array(LowCardinality(String)) CODEC(ZSTD(1)),
    option_probs     Array(Float32) CODEC(ZSTD(1)),
    outside          Float32 CODEC(ZSTD(1)),
    method           Enum8('none' = 0, 'logprobs' = 1, 'votes' = 2, 'structured' = 3, 'native' = 4, 'model' = 5, 'pooled' = 6, 'simulated' = 7),
    judge            LowCardinality(String),
    judge_model      LowCardinality(String),
    attempts         UInt8,
    latency_ms       UInt32 CODEC(T64, ZSTD(1)),
    input_tokens     UInt32 CODEC(T64, ZSTD(1)),
    output_tokens    UInt32 CODEC(T64, ZSTD(1)),
    cost_nano_usd    UInt64 CODEC(T64, ZSTD(1)),
    excerpt          String CODEC(ZSTD(3)),
    answer_excerpt   String CODEC(ZSTD(3)),
    detail           String CODEC(ZSTD(3)),
    evaluated_at     DateTime64(3, 'UTC') CODEC(DoubleDelta, ZSTD(1)),
    inserted_at      DateTime('UTC') DEFAULT now('UTC') CODEC(DoubleDelta, ZSTD(1)),
    worker           LowCardinality(String),
    weight           Float64 ALIAS 1 / pi,
    INDEX ix_id       interaction_id TYPE bloom_filter(0.01) GRANULARITY 4,
    INDEX ix_offset   kafka_offset   TYPE minmax GRANULARITY 1,
    INDEX ix_inserted inserted_at    TYPE minmax GRANULARITY 1,
    CONSTRAINT pi_range       CHECK pi > 0 AND pi <= 1,
    CONSTRAINT score_iff_ok   CHECK (status = 'ok') = isNotNull(score),
    CONSTRAINT failure_yields CHECK status NOT IN ('shed', 'error') OR evaluated_at < '2000-01-01 00:00:00'
)
ENGINE = ReplacingMergeTree(evaluated_at)
PARTITION BY toDate(ts)
ORDER BY (check, check_version, toStartOfMinute(ts), interaction_id, kafka_topic, kafka_partition, kafka_offset, element, repeat)
TTL toDate(ts) + INTERVAL 400 DAY
SETTINGS ttl_only_drop_parts = 1, non_replicated_deduplication_window = 10000;

-- Text of judged interactions, as far as privacy allows; kept for a shorter time.
CREATE TABLE IF NOT EXISTS {{db}}.interactions
(
    ts              DateTime64(3, 'UTC') CODEC(DoubleDelta, ZSTD(1)),
    interaction_id  String CODEC(ZSTD(1)),
    kafka_topic     LowCardinality(String),
    kafka_partition UInt32 CODEC(T64, ZSTD(1)),
    kafka_offset    UInt64 CODEC(DoubleDelta, ZSTD(1)),
    element         UInt16 DEFAULT 0,
    input           String CODEC(ZSTD(3)),
    output          String CODEC(ZSTD(3)),
    expected        Array(String) CODEC(ZSTD(3)),
    criteria        String CODEC(ZSTD(3)),
    context         Array(String) CODEC(ZSTD(3)),
    messages        String CODEC(ZSTD(3)),
    tenant          LowCardinality(String),
    app             LowCardinality(String),
    model           LowCardinality(String),
    route           LowCardinality(String),
    prompt_version  LowCardinality(String),
    environment     LowCardinality(String),
    session_id      String CODEC(ZSTD(1)),
    user_id         String CODEC(ZSTD(1)),
    trace_id        String CODEC(ZSTD(1)),
    input_tokens    UInt32 CODEC(T64, ZSTD(1)),
    output_tokens   UInt32 CODEC(T64, ZSTD(1)),
    latency_ms      UInt32 CODEC(T64, ZSTD(1)),
    feedback        Nullable(Float32),
    status          LowCardinality(String),
    flags           Array(LowCardinality(String)),
    attributes      Map(LowCardinality(String), String) CODEC(ZSTD(1)),
    text_store      Enum8('full' = 1, 'excerpt' = 2, 'none' = 3),
    redactions      UInt16,
    stored_at       DateTime64(3, 'UTC') DEFAULT now64(3, 'UTC'),
    INDEX ix_id    interaction_id TYPE bloom_filter(0.01) GRANULARITY 1,
    INDEX ix_trace trace_id       TYPE bloom_filter(0.01) GRANULARITY 1
)
ENGINE = ReplacingMergeTree(stored_at)
PARTITION BY toDate(ts)
ORDER BY (toStartOfHour(ts), interaction_id)
TTL toDate(ts) + INTERVAL 30 DAY
SETTINGS ttl_only_drop_parts = 1, non_replicated_deduplication_window = 10000, index_granularity_bytes = 67108864;

-- The ledger: every interaction read, counted per block of 32,768 offsets. Counts are
-- cumulative within a segment, so the row counted furthest is the right one.
CREATE TABLE IF NOT EXISTS {{db}}.population
(
    kafka_topic     LowCardinality(String),
    kafka_partition UInt32 CODEC(T64, ZSTD(1)),
    block           UInt64 CODEC(DoubleDelta, ZSTD(1)),
    segment_from    UInt64 CODEC(DoubleDelta, ZSTD(1)),
    minute          DateTime('UTC') CODEC(DoubleDelta, ZSTD(1)),
    check           LowCardinality(String),
    check_version   LowCardinality(String),
    stratum         LowCardinality(String),
    decision        Enum8('filtered' = 1, 'sampled_out' = 2, 'not_applicable' = 3, 'dead_lettered' = 4, 'selected' = 5, 'no_interaction' = 6, 'interaction' = 7),
    reason          LowCardinality(String),
    pi              Float64 CODEC(ZSTD(1)),
    epoch           UInt32 CODEC(T64, ZSTD(1)),
    n               UInt64 CODEC(T64, ZSTD(1)),
    upto_offset     UInt64 CODEC(DoubleDelta, ZSTD(1)),
    log_time        DateTime('UTC') CODEC(DoubleDelta, ZSTD(1)),
    checks_hash      LowCardinality(String),
    inserted_at     DateTime('UTC') DEFAULT now('UTC') CODEC(DoubleDelta, ZSTD(1)),
    INDEX ix_minute   minute      TYPE minmax GRANULARITY 1,
    INDEX ix_inserted inserted_at TYPE minmax GRANULARITY 1
)
ENGINE = ReplacingMergeTree(upto_offset)
PARTITION BY toYYYYMM(minute)
ORDER BY (kafka_topic, kafka_partition, block, segment_from, minute, check, check_version, stratum, decision, reason, pi, epoch)
TTL minute + INTERVAL 400 DAY
SETTINGS ttl_only_drop_parts = 1, non_replicated_deduplication_window = 10000;

-- Sums of the ledger per minute, recomputed as a whole for minutes that changed.
CREATE TABLE IF NOT EXISTS {{db}}.population_1m
(
    check            LowCardinality(String),
    check_version    LowCardinality(String),
    minute           DateTime('UTC') CODEC(DoubleDelta, ZSTD(1)),
    stratum          LowCardinality(String),
    n_filtered       UInt64 CODEC(T64, ZSTD(1)),
    n_not_applicable UInt64 CODEC(T64, ZSTD(1)),
    n_sampled_out    UInt64 CODEC(T64, ZSTD(1)),
    n_selected       UInt64 CODEC(T64, ZSTD(1)),
    n_interactions   UInt64 CODEC(T64, ZSTD(1)),
    n_no_interaction UInt64 CODEC(T64, ZSTD(1)),
    n_dead_lettered  UInt64 CODEC(T64, ZSTD(1)),
    computed_at      DateTime64(3, 'UTC') CODEC(DoubleDelta, ZSTD(1))
)
ENGINE = ReplacingMergeTree(computed_at)
PARTITION BY toYYYYMM(minute)
ORDER BY (check, check_version, minute, stratum)
SETTINGS non_replicated_deduplication_window = 10000;

-- Answers of people. A correction is a higher revision, a removal is deleted = 1.
CREATE TABLE IF NOT EXISTS {{db}}.labels
(
    check           LowCardinality(String),
    ts              DateTime64(3, 'UTC') CODEC(DoubleDelta, ZSTD(1)),
    interaction_id  String CODEC(ZSTD(1)),
    question        LowCardinality(String),
    rater           LowCardinality(String),
    revision        UInt64,
    deleted         UInt8 DEFAULT 0,
    option          LowCardinality(String),
    value           Nullable(Float32),
    passed          Nullable(UInt8),
    pi2             Float64 DEFAULT 1,
    origin          Enum8('sampled' = 1, 'volunteered' = 2, 'imported' = 3),
    slice_id        UInt64,
    slice           Map(LowCardinality(String), String),
    comment         String CODEC(ZSTD(3)),
    labelled_at     DateTime64(3, 'UTC'),
    inserted_at     DateTime('UTC') DEFAULT now('UTC'),
    INDEX ix_id       interaction_id TYPE bloom_filter(0.01) GRANULARITY 1,
    INDEX ix_inserted inserted_at    TYPE minmax GRANULARITY 1,
    CONSTRAINT pi2_range CHECK pi2 > 0 AND pi2 <= 1
)
ENGINE = ReplacingMergeTree(revision)
PARTITION BY toYYYYMM(ts)
ORDER BY (check, toStartOfMinute(ts), interaction_id, question, rater)
SETTINGS non_replicated_deduplication_window = 10000;

-- Sufficient statistics per minute, version and full slice: plain sums, so that any window
-- is a sum of rows. Names: w is the weight 1/pi, s the score, v the verdict, y the share of
-- raters who passed it; b, d and x are sums over labelled rows.
CREATE TABLE IF NOT EXISTS {{db}}.quality_1m
(
    check           LowCardinality(String),
    check_version   LowCardinality(String),
    minute          DateTime('UTC') CODEC(DoubleDelta, ZSTD(1)),
    slice_id        UInt64 CODEC(ZSTD(1)),
    slice           Map(LowCardinality(String), String) CODEC(ZSTD(1)),
    stratum         LowCardinality(String),

    n_ok             UInt64 CODEC(T64, ZSTD(1)),
    n_unscored       UInt64 CODEC(T64, ZSTD(1)),
    n_not_applicable UInt64 CODEC(T64, ZSTD(1)),
    n_shed           UInt64 CODEC(T64, ZSTD(1)),
    n_error          UInt64 CODEC(T64, ZSTD(1)),
    sw_unscored      Float64 CODEC(ZSTD(1)),
    sw_shed          Float64 CODEC(ZSTD(1)),
    sw_error         Float64 CODEC(ZSTD(1)),

    n      UInt64 CODEC(T64, ZSTD(1)),
    x      UInt64 CODEC(T64, ZSTD(1)),
    sw     Float64 CODEC(ZSTD(1)),
    sw2    Float64 CODEC(ZSTD(1)),
    swv    Float64 CODEC(ZSTD(1)),
    sw2v   Float64 CODEC(ZSTD(1)),
    sws    Float64 CODEC(ZSTD(1)),
    sw2s   Float64 CODEC(ZSTD(1)),
    sws2   Float64 CODEC(ZSTD(1)),
    sw2s2  Float64 CODEC(ZSTD(1)),
    pi_min Float64 CODEC(ZSTD(1)),

    option_names Array(LowCardinality(String)) CODEC(ZSTD(1)),
    option_w     Array(Float64) CODEC(ZSTD(1)),
    option_w2    Array(Float64) CODEC(ZSTD(1)),
    chosen_w     Array(Float64) CODEC(ZSTD(1)),
    chosen_w2    Array(Float64) CODEC(ZSTD(1)),
    hist_n       Array(UInt32)  CODEC(ZSTD(1)),
    hist_w       Array(Float64) CODEC(ZSTD(1)),

    n_label   UInt64,  n_label_pending UInt64,
    b0 Float64, bf Float64, by Float64,
    d0 Float64, df Float64, dff Float64, dy Float64, dyy Float64, dfy Float64,
    x0 Float64, xf Float64, xff Float64, xy Float64, xfy Float64,
    tp UInt64, fp UInt64, fn UInt64, tn UInt64,
    tp_w Float64, fp_w Float64, fn_w Float64, tn_w Float64,
    brier_w   Float64, logloss_w Float64,
    lab_n  Array(UInt32)  CODEC(ZSTD(1)),
    lab_w  Array(Float64) CODEC(ZSTD(1)),
    lab_wp Array(Float64) CODEC(ZSTD(1)),
    lab_wy Array(Float64) CODEC(ZSTD(1)),

    latency       AggregateFunction(quantileTDigest(0.5), UInt32),
    input_tokens  UInt64 CODEC(T64, ZSTD(1)),
    output_tokens UInt64 CODEC(T64, ZSTD(1)),
    cost_nano_usd UInt64 CODEC(T64, ZSTD(1)),
    computed_at   DateTime64(3, 'UTC') CODEC(DoubleDelta, ZSTD(1))
)
ENGINE = ReplacingMergeTree(computed_at)
PARTITION BY toYYYYMM(minute)
ORDER BY (check, check_version, minute, slice_id)
SETTINGS non_replicated_deduplication_window = 10000;

-- A drift detector after a closed minute, for one check version and declared slice.
CREATE TABLE IF NOT EXISTS {{db}}.detector_state
(
    check         LowCardinality(String),
    check_version LowCardinality(String),
    slice_id      UInt64,
    slice         Map(LowCardinality(String), String),
    detector      LowCardinality(String),
    minute        DateTime('UTC') CODEC(DoubleDelta, ZSTD(1)),
    samples       UInt64,
    null_rate     Float64,
    tolerance     Float64,
    threshold     Float64,
    w_max         Float64,
    r             Array(Float64) CODEC(ZSTD(1)),
    e_value       Float64,
    latched       UInt8,
    baseline      String CODEC(ZSTD(3)),
    inputs_digest FixedString(16),
    computed_at   DateTime64(3, 'UTC')
)
ENGINE = ReplacingMergeTree(computed_at)
PARTITION BY toYYYYMM(minute)
ORDER BY (check, check_version, slice_id, detector, minute)
TTL minute + INTERVAL 400 DAY
SETTINGS ttl_only_drop_parts = 1, non_replicated_deduplication_window = 1000;

-- Every revision of every alarm, with its evidence.
CREATE TABLE IF NOT EXISTS {{db}}.alarms
(
    alarm_id      String,
    check         LowCardinality(String),
    check_version LowCardinality(String),
    slice_id      UInt64,
    slice         Map(LowCardinality(String), String),
    detector      LowCardinality(String),
    opened_at     DateTime64(3, 'UTC'),
    revision      UInt64,
    state         Enum8('open' = 1, 'acknowledged' = 2, 'closed' = 3),
    updated_at    DateTime64(3, 'UTC'),
    closed_at     Nullable(DateTime64(3, 'UTC')),
    by            LowCardinality(String),
    note          String CODEC(ZSTD(3)),
    summary       String CODEC(ZSTD(3)),
    evidence      String CODEC(ZSTD(3))
)
ENGINE = ReplacingMergeTree(revision)
PARTITION BY toYear(opened_at)
ORDER BY (toDate(opened_at), alarm_id)
SETTINGS non_replicated_deduplication_window = 1000;

-- What a check version was: enough to read old rows without the old checks file.
CREATE TABLE IF NOT EXISTS {{db}}.check_versions
(
    check         LowCardinality(String),
    check_version String,
    evaluator     LowCardinality(String),
    question_kind Enum8('none' = 0, 'boolean' = 1, 'choice' = 2, 'score' = 3),
    option_names  Array(String),
    option_scores Array(Nullable(Float32)),
    pass_line     Nullable(Float64),
    pass_options  Array(String),
    judge         LowCardinality(String),
    judge_fingerprint String,
    definition    String CODEC(ZSTD(3)),
    first_seen    DateTime64(3, 'UTC'),
    updated_at    DateTime64(3, 'UTC') DEFAULT now64(3, 'UTC')
)
ENGINE = ReplacingMergeTree(updated_at)
ORDER BY (check, check_version)
SETTINGS non_replicated_deduplication_window = 1000;

-- Published rates. The first publication wins, or a replay would see another pi.
CREATE TABLE IF NOT EXISTS {{db}}.sampling_rates
(
    check        LowCardinality(String),
    stratum      String,
    epoch        UInt32,
    starts_at    DateTime('UTC'),
    pi           Float64,
    pi_floor     Float64,
    expected_n   Float64,
    cause        LowCardinality(String),
    published_at DateTime64(3, 'UTC'),
    first_wins   UInt64 MATERIALIZED 18446744073709551615 - toUInt64(toUnixTimestamp64Milli(published_at)),
    CONSTRAINT pi_range CHECK pi > 0 AND pi <= 1
)
ENGINE = ReplacingMergeTree(first_wins)
PARTITION BY toYYYYMM(starts_at)
ORDER BY (check, epoch, stratum)
SETTINGS non_replicated_deduplication_window = 1000;

-- Answers of the judge to fixed items with human labels.
CREATE TABLE IF NOT EXISTS {{db}}.golden_runs
(
    check         LowCardinality(String),
    check_version LowCardinality(String),
    run_at        DateTime64(3, 'UTC'),
    item_id       String,
    repeat        UInt8,
    status        Enum8('ok' = 1, 'unscored' = 2, 'not_applicable' = 3, 'shed' = 4, 'error' = 5),
    reason        LowCardinality(String),
    human_option  LowCardinality(String),
    human_passed  Nullable(UInt8),
    baseline_passed Nullable(UInt8),
    score         Nullable(Float32),
    passed        Nullable(UInt8),
    option        LowCardinality(String),
    option_probs  Array(Float32),
    judge_model   LowCardinality(String),
    latency_ms    UInt32,
    cost_nano_usd UInt64,
    evaluated_at  DateTime64(3, 'UTC')
)
ENGINE = ReplacingMergeTree(evaluated_at)
PARTITION BY toYYYYMM(run_at)
ORDER BY (check, check_version, run_at, item_id, repeat)
SETTINGS non_replicated_deduplication_window = 1000;

-- Records that could not be used, durable before their offsets are resolved. They are
-- kept from when they were written, since a letter may be of an old record.
CREATE TABLE IF NOT EXISTS {{db}}.dead_letters
(
    kafka_topic     LowCardinality(String),
    kafka_partition UInt32,
    kafka_offset    UInt64 CODEC(DoubleDelta, ZSTD(1)),
    log_time        DateTime64(3, 'UTC'),
    reason          LowCardinality(String),
    error           String CODEC(ZSTD(3)),
    attempts        UInt16,
    first_failure   DateTime64(3, 'UTC'),
    assay_version   LowCardinality(String),
    headers         Map(String, String) CODEC(ZSTD(3)),
    key             String CODEC(ZSTD(3)),
    body            String CODEC(ZSTD(3)),
    body_bytes      UInt64,
    body_sha256     FixedString(32),
    stub            UInt8,
    replayed_at     DateTime64(3, 'UTC') DEFAULT 0,
    inserted_at     DateTime64(3, 'UTC') DEFAULT now64(3)
)
ENGINE = ReplacingMergeTree(inserted_at)
PARTITION BY toYYYYMMDD(log_time)
ORDER BY (kafka_topic, kafka_partition, kafka_offset)
TTL toDateTime(inserted_at) + INTERVAL 30 DAY
SETTINGS non_replicated_deduplication_window = 1000, ttl_only_drop_parts = 1;
